"""What the report says about Spark."""

from __future__ import annotations

from collections.abc import Iterator

from prose import paragraph, verdict_table
from results import Results
from targets import DIVIDED, spark_verdicts

STEPS = {
    "reading": "reading the file",
    "packets": "packets, in the order of their connections",
    "frames": "frames, counted",
    "columns": "five columns of numbers",
}
MISSED_BY_SPARK = """\
- Rates of `messages` cannot exceed their ceiling. A row of the union of five dialects has more columns than
  when the targets were set. The option `dialect` limits it to the columns of one.
- `frames, numbers` and `messages, 3 columns`: Spark gets so few values that most of the time goes into
  following the capture. A ceiling of 2.1 core-seconds for 2 GB, of numbers, leaves 0.9 for that at 70%; that
  of three columns, 1.1, leaves 0.5. It takes 1.2 alone, and 1.3 to 1.6 beside a JVM. Samples of the time
  (`perf record -e cpu-clock --call-graph dwarf`, `arrow.CaptureSession` on 500 MB):

  | | numbers of frames | 3 columns of messages | a scan for states |
  | --- | ---: | ---: | ---: |
  | copying the file out of the kernel | 31% | 25% | 31% |
  | Python between the file and its buffer | 5% | 5% | 6% |
  | records, headers, connections, order of segments | 13% | 16% | 16% |
  | frames, contents, cells | 25% | 31% | 23% |
  | opening and closing connections, negotiation: Python | 18% | 18% | 18% |
  | batches, and the rest | 9% | 5% | 7% |

  Tried: mapping the file takes 6% to 9% less, but a file that is cut short meanwhile ends the worker. Reads
  of 64 and of 256 KiB take as long as those of 128. Without the garbage collector, 3% less.
- `pcap_to_parquet` decodes before it writes, 0.6 us a row, and has jobs that plan and move its files. Its
  ceiling only writes, with pyarrow's usual settings: 1.4 us a row, 1.2 with those used here.
  `parquet_to_stream` encodes, plans and moves its files.
- Frames as numbers keep the JVM and the worker busy at once, so `local[1]` already uses most of two cores.
- Where the rate is missed and the share of the ceiling is met, the ceiling was low as well: the speed of the
  machine varies.
"""


def spark_section(results: Results) -> Iterator[str]:
    """Yield the section about Spark."""
    found = results.spark
    if not found:
        return
    yield "\n## Spark\n"
    size = f"{found['megabytes'] / 4:.0f} MB"
    yield from paragraph(f"""
        Four captures of {size} in one session with `local[2]` (`make bench-spark`): the JVM and the workers
        share two cores. A ceiling is the same job with nothing to decode or encode. For reading, its rows are
        made before it begins. For writing, it drops the rows. The ceiling of `parquet_to_stream` reads, and
        writes as many octets.
    """)
    yield from paragraph("""
        A job, its ceiling, the job in other sessions, and tshark alternate. Rates are medians, in millions a
        second: of octets of captures, of messages, or of rows with a frame each. Ratios are medians of those
        within a round. *One core* is `local[1]`, with its JVM and worker bound to one core.
    """)
    yield "| job | reached | ceiling | share of it |\n| --- | ---: | ---: | ---: |"
    for name, job in found["jobs"].items():
        if not name.endswith(DIVIDED):
            yield f"| {name} | {job['local[2]']:.2f} | {job['ceiling']:.2f} | {job['of ceiling']:.0%} |"
    yield "\n| job | beside `local[1]` | cores busy there, and in `local[2]` | beside one core |"
    yield "| --- | ---: | ---: | ---: |"
    for name, job in found["jobs"].items():
        if "beside one core" in job:
            busy = f"{job['cores busy, local[1]']:.2f}, {job['cores busy, local[2]']:.2f}"
            yield f"| {name} | {job['beside local[1]']:.2f}x | {busy} | {job['beside one core']:.2f}x |"
    yield ""
    for name, job in found["jobs"].items():
        if name.endswith(DIVIDED):
            yield from paragraph(
                f"{name.removesuffix(DIVIDED)}, of one capture: {job['ceiling']:.0f} MB/s by one task, "
                f"{job['local[2]']:.0f} MB/s by two, with the scan for the state of the second.",
                "",
            )
    if "tshark" in found["jobs"]["messages"]:
        rate = found["jobs"]["messages"]["tshark"]
        yield f"tshark -T fields: {rate:.3f} million messages a second, by one core.\n"
    yield from _steps(results)
    yield from verdict_table(spark_verdicts(results))
    if results.spark_equality:
        yield "\n`make spark-equality` compares rows by hashes of all their values. The configurations:\n"
        yield from (f"- {each}" for each in results.spark_equality["apart"])
    yield "\nWhy targets are missed:\n"
    yield from MISSED_BY_SPARK.splitlines()


def _steps(results: Results) -> Iterator[str]:
    found = results.steps
    if not found:
        return
    yield from paragraph("""
        CPU seconds for 100 MB of a capture, step by step (`make bench-steps`). Each step does what those
        above it do. The last but one is the ceiling of the last: it follows the same frames of the same file.
    """)
    yield "| what is done | CPU s | of the last step |\n| --- | ---: | ---: |"
    for name, seconds in found["steps"].items():
        yield f"| {STEPS[name]} | {seconds:.3f} | {seconds / found['steps']['columns']:.0%} |"
    whole, jvm = found["spark"]["all"], found["spark"]["jvm"]
    yield from paragraph(f"""
        The same columns through Spark (`local[1]`, dropped by its `noop` writer) take {whole:.3f}. Of these
        the JVM has {jvm / whole:.0%}.
    """)
