#!/bin/bash -eu
# Builds the fuzz targets in the image of the Dockerfile. OSS-Fuzz sets CC, CFLAGS, SRC, WORK and OUT.

AMQPCODEC_BUILD=require python3 -m pip install .

# The compiled modules need the sanitizer's runtime, which only the targets are started with.
export AMQPCODEC_IMPL=py PYTHONPATH="$PWD/fuzz:$PWD/tests"
python3 fuzz/seeds.py "$WORK/seeds"

# Modules are imported by names that are put together, and pyarrow imports what knows of time zones from C.
options=(--collect-submodules amqpcodec --hidden-import zoneinfo --collect-all tzdata)

for folder in "$WORK"/seeds/*/; do
  target=$(basename "$folder")
  name=fuzz_$target
  printf 'import sys\n\nfrom run import main\n\nmain("%s", sys.argv[1:])\n' "$target" >"$SRC/$name.py"
  compile_python_fuzzer "$SRC/$name.py" "${options[@]}"
  zip -jqr "$OUT/${name}_seed_corpus.zip" "$folder"
  printf '[libfuzzer]\nmax_len = 4096\n' >"$OUT/$name.options"
  if [ -f "$WORK/seeds/$target.dict" ]; then
    cp "$WORK/seeds/$target.dict" "$OUT/$name.dict"
  fi
done
