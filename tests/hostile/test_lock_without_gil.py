"""The decoder's lock where there is no global interpreter lock: its C on its own, in threads of C.

No such interpreter is needed for that, and none was at hand. ThreadSanitizer judges it where the compiler
has it; without, the count alone has to come out right.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

KERNEL = Path(__file__).resolve().parents[2] / "src" / "amqpcodec" / "_kernel"
PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#define CYTHON_INLINE inline
#define Py_GIL_DISABLED 1
%s
#define THREADS 4
#define ROUNDS 200000
static volatile char locked;
static long guarded;  /* changed by the holder only */
static long rounds[THREADS];

static void *work(void *number) {
    for (int i = 0; i < ROUNDS; i++)
        if (amqp_lock_acquire(&locked)) {
            guarded++;
            rounds[(long)number]++;
            amqp_lock_release(&locked);
        }
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    long total = 0;
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < THREADS; i++) total += rounds[i];
    printf("%%ld %%ld\\n", guarded, total);
    return guarded != total;
}
"""


def code() -> str:
    """The C in lock_c.pxd."""
    [found] = re.findall(r'"""\n(.*?)"""', (KERNEL / "lock_c.pxd").read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


@pytest.mark.parametrize(
    "flags", [["-O2"], ["-O1", "-g", "-fsanitize=thread"]], ids=["plain", "ThreadSanitizer"]
)
@pytest.mark.parametrize("broken", [False, True], ids=["as it is", "broken"])
def test_holders_exclude_each_other(tmp_path: Path, flags: list[str], broken: bool) -> None:
    if broken and "-O2" in flags:
        pytest.skip("whether a race is lost is a matter of luck")
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    text = code()
    if broken:
        text = text.replace("Py_GIL_DISABLED", "SOMETHING_ELSE")  # what serves with a lock must fail without
    source, program = tmp_path / "lock.c", tmp_path / "lock"
    source.write_text(PROGRAM % text, encoding="utf-8")
    # A preloaded sanitizer is meant for Python, not for compilers.
    plain = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TSAN_OPTIONS": "halt_on_error=1"}
    command = [compiler, *flags, "-pthread", "-o", str(program), str(source)]
    made = subprocess.run(command, capture_output=True, encoding="utf-8", env=plain, check=False)
    if "thread" in flags[-1] and "tsan" in made.stderr:
        pytest.skip("the compiler has no ThreadSanitizer")
    assert made.returncode == 0, made.stderr
    # ThreadSanitizer wants addresses where it expects them.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    done = subprocess.run(
        [*fixed, str(program)], capture_output=True, encoding="utf-8", env=plain, timeout=120, check=False
    )
    assert (done.returncode != 0) is broken, done.stdout + done.stderr
