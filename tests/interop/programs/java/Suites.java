import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;
import org.junit.runners.Suite.SuiteClasses;

/** Runs the classes of suites, without classes and methods of "left.out"; prints a line for each test that passes. */
public class Suites {
    static final long SECONDS = 300; // for a class; then it is left
    static final Set<String> LEFT_OUT = Set.of(System.getProperty("left.out").split(","));

    public static void main(String[] names) throws Exception {
        for (String name : names) {
            Class<?> suite = Class.forName(name); // its properties are set now
            for (Class<?> each : suite.getAnnotation(SuiteClasses.class).value())
                if (!LEFT_OUT.contains(each.getSimpleName())) run(each);
        }
        System.exit(0); // threads of tests that are left
    }

    private static void run(Class<?> tests) throws InterruptedException {
        JUnitCore core = new JUnitCore();
        core.addListener(new Passed());
        Thread thread = new Thread(() -> core.run(Request.aClass(tests).filterWith(new Wanted())));
        thread.setDaemon(true);
        thread.start();
        thread.join(TimeUnit.SECONDS.toMillis(SECONDS));
        if (thread.isAlive()) System.out.println("LEFT " + tests.getName());
    }

    private static class Wanted extends Filter {
        @Override
        public boolean shouldRun(Description test) {
            return !test.isTest() || !LEFT_OUT.contains(test.getMethodName());
        }

        @Override
        public String describe() {
            return "without management";
        }
    }

    private static class Passed extends RunListener {
        private final List<Description> others = new ArrayList<>();

        @Override
        public void testFailure(Failure failure) {
            others.add(failure.getDescription());
            System.out.println("FAILED " + failure.getDescription() + ": " + failure.getTrace());
        }

        @Override
        public void testAssumptionFailure(Failure failure) {
            others.add(failure.getDescription());
        }

        @Override
        public void testFinished(Description test) {
            if (!others.contains(test))
                System.out.println("PASSED " + test.getTestClass().getSimpleName() + "." + test.getMethodName());
        }
    }
}
