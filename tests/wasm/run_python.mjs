// Runs a Python script under pyodide: node run_python.mjs PYODIDE.mjs FOLDER SCRIPT [ARGUMENT...]
// The folder becomes /project, where the script and its imports are; the script's standard output is ours.
import { pathToFileURL } from "node:url";

const [pyodide, folder, script, ...rest] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(pyodide));
const python = await loadPyodide({ args: rest });
python.mountNodeFS("/project", folder);
python.globals.set("script", `/project/${script}`);
try {
  python.runPython(`
import runpy, sys
sys.path[:0] = ["/project", "/project/tests"]
runpy.run_path(script, run_name="__main__")
`);
} catch (error) {
  // Without this Node would show the line of pyodide's own text, which is a megabyte long.
  console.error(error.message);
  process.exitCode = 1;
}
