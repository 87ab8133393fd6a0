#!/bin/sh
# Runs every step of gpu_test, each in a process of its own with a time limit, and writes FOLDER/report.md and FOLDER/log.txt.
# What one step breaks is that step's loss alone. Ends before GPU_TEST_SECONDS (520) are over; no step takes more than
# GPU_TEST_STEP_SECONDS, if that is set. Needs no Rust and no CUDA toolkit.
# What the CUDA driver says to itself goes into the log, kernels are loaded when their image is, and a kernel that fails leaves a small
# core dump in FOLDER and goes on, but where it is to fail or where time is measured.
# GPU_TEST_LOADER=raw runs what needs no CUDA, and nothing else.
# usage: run.sh FOLDER
# exit status: 0 all steps are right, 1 some are not, 2 there is no GPU
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: run.sh FOLDER}
mkdir -p "$out" || exit 1
report=$out/report.md
log=$out/log.txt
step=$out/step.txt
end=$(($(date +%s) + ${GPU_TEST_SECONDS:-520}))
: > "$log"

export CUDA_LOG_FILE="$out/driver.txt" CUDA_MODULE_LOADING=EAGER
export CUDA_ENABLE_LIGHTWEIGHT_COREDUMP=1 CUDA_COREDUMP_FILE="$out/core-%p"
# after a dump a driver ends the process, unless it knows the flags (12.4) and is told not to
skips=skip_abort
for what in nonrelocated_elf_images global_memory shared_memory local_memory constbank_memory; do skips=$skips,skip_$what; done
export CUDA_COREDUMP_GENERATION_FLAGS="$skips"

# dumps 0 or 1: whether what follows leaves core dumps.
dumps() { export CUDA_ENABLE_COREDUMP_ON_EXCEPTION="$1"; }
dumps 1

left() { echo $((end - $(date +%s))); }

# limited SECONDS COMMAND...: output in $step and the log, status of the command; 124 or 137 if it took too long, 99 if no time is left.
limited() {
  most=${GPU_TEST_STEP_SECONDS:-$1}
  [ "$1" -lt "$most" ] && most=$1
  shift
  rest=$(left)
  [ "$rest" -lt "$most" ] && most=$rest
  : > "$step"
  [ "$most" -lt 1 ] && return 99
  echo "== $*" >> "$log"
  # what hangs in the kernel cannot be killed, but what waits for it can
  timeout -s KILL $((most + 10)) timeout -k 5 "$most" "$@" < /dev/null > "$step" 2>&1
  status=$?
  cat "$step" >> "$log"
  if [ -s "$CUDA_LOG_FILE" ]; then
    echo "-- the driver's own log" >> "$log"
    cat "$CUDA_LOG_FILE" >> "$log"
    rm -f "$CUDA_LOG_FILE"
  fi
  return $status
}

# told NAME STATUS: the rows in $step, and what became of a step that could not tell it itself.
told() {
  grep '^| ' "$step" >> "$report"
  case $2 in
    0) ;;
    1) grep -q -E '^\| [^|]*\|[^|]*\| FAILED ' "$step" || echo "| $1 | | FAILED | $(tail -1 "$step" | tr '|' '/') |" >> "$report" ;;
    99) echo "| $1 | | SKIPPED | no time left |" >> "$report" ;;
    124 | 137) echo "| $1 | | TIMEOUT | no end within $most s |" >> "$report" ;;
    *) echo "| $1 | | CRASHED | exit status $2: $(tail -1 "$step" | tr '|' '/') |" >> "$report" ;;
  esac
}

gpu=$(timeout -k 5 20 nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2> /dev/null | head -1)
{
  echo "# GPU test"
  echo
  echo "| | |"
  echo "|---|---|"
  echo "| date | $(date -u '+%Y-%m-%d %H:%M') UTC |"
  echo "| GPU, driver, memory | ${gpu:-nvidia-smi says nothing} |"
  echo "| kernel | $(uname -sr) |"
  echo "| made from | $(cat "$here/commit" 2> /dev/null) |"
  echo
} > "$report"

loader=${GPU_TEST_LOADER:-all}
# without CUDA nothing of this machine's libraries is needed
raw_program=$here/gpu_test
[ -x "${raw_program}_static" ] && raw_program=${raw_program}_static

if [ "$loader" = raw ]; then
  limited 60 "$raw_program" raw_bring_up "$here"
else
  limited 60 "$here/gpu_test" device "$here"
fi
status=$?
if [ "$status" -eq 1 ] && [ ! -e /dev/nvidiactl ]; then
  why=$(sed -n 's/^| [a-z_]* | *[a-z]* *| FAILED | \(.*\) |$/\1/p' "$step")
  echo "no GPU: ${why:-gpu_test did not run, see log.txt}" | tee -a "$report"
  rm -f "$step"
  exit 2
fi

{
  echo "## Steps"
  echo
  echo "| step | loader | | |"
  echo "|---|---|---|---|"
} >> "$report"
only=.
program=$here/gpu_test
[ "$loader" = raw ] && only=^raw_ && program=$raw_program
limited 20 "$program" list
status=$?
grep -E '^[a-z0-9_]+ [0-9]+$' "$step" | grep "$only" > "$out/steps.txt"
if [ ! -s "$out/steps.txt" ]; then
  told "gpu_test list" "$status"
  # a C library that is too old leaves the steps without CUDA
  [ "$raw_program" != "$here/gpu_test" ] && "$raw_program" list | grep '^raw_' > "$out/steps.txt"
fi
while read -r name seconds; do
  program=$here/gpu_test
  case $name in raw_*) program=$raw_program ;; esac
  case $name in assertion | fault | speed_*) dumps 0 ;; *) dumps 1 ;; esac
  limited "$seconds" "$program" "$name" "$here"
  status=$?
  told "$name" "$status"
  # what kernels print goes past the step that launches them
  if [ "$name" = printf ] && [ "$status" -ne 99 ]; then
    count=$(grep -c -E '^block [01] of 2 says 4711$' "$step")
    word=FAILED
    [ "$count" -eq 4 ] && word=ok
    echo "| printf, the lines | | $word | $count of 4 were printed |" >> "$report"
  fi
done < "$out/steps.txt"
rm -f "$out/steps.txt"

if [ "$loader" != raw ]; then
  # kernels are loaded when they are asked for, as is usual since CUDA 12.2
  dumps 0
  limited 40 env CUDA_MODULE_LOADING=LAZY "$here/gpu_test" speed_ready "$here"
  told "speed_ready, lazy" "$?"
fi

# the command line: which GPUs there are, and from the file to the numbers that come back
dumps 1
for option in "" --raw; do
  [ "$loader$option" = raw ] && continue
  # shellcheck disable=SC2086 # no option is no word
  limited 20 "$here/hoist" devices $option
  status=$?
  word=FAILED
  found=$(grep -E 'sm_[0-9]+' "$step" | head -1 | tr '|' '/')
  [ "$status" -eq 0 ] && [ -n "$found" ] && word=ok
  echo "| hoist devices${option:+ $option} | | $word | ${found:-$(tail -1 "$step" | tr '|' '/')} |" >> "$report"
done
kernels=
[ "$loader" != raw ] && limited 20 "$here/gpu_test" file gpu-13.0-sm_90.fatbin && kernels=$(cat "$step")
for by in driver own raw; do
  case $loader in all | "$by") ;; *) continue ;; esac
  limited 30 "$here/hoist" launch "$here/${kernels:-gpu-13.0-sm_90.fatbin}" vector_add buf:f32:1,2,3 buf:f32:10,20,30.5 zeros:f32:3 i32:3 \
    --block 32 --show-buffers --loader "$by"
  if [ "$(tail -1 "$step")" = buf:f32:11,22,33.5 ]; then
    echo "| hoist launch | $by | ok | $(tail -1 "$step") |" >> "$report"
  else
    echo "| hoist launch | $by | FAILED | $(tail -1 "$step" | tr '|' '/') |" >> "$report"
  fi
done

# what libcuda tells the kernel driver around one launch: its order, its doorbell, its launch block's memory
if [ "$loader" != raw ] && [ -f "$here/recorder.so" ]; then
  rm -f "$out/recorded.txt"
  limited 30 env LD_PRELOAD="$here/recorder.so" RECORDER_LOG="$out/recorded.txt" "$here/gpu_test" ladder_1_as_it_is "$here"
  status=$?
  lines=$(grep -c '^ioctl ' "$out/recorded.txt" 2> /dev/null)
  word=FAILED
  [ "${lines:-0}" -gt 0 ] && word=ok
  echo "| recorder | driver | $word | ${lines:-0} ioctls in recorded.txt, exit status $status |" >> "$report"
fi

if [ "$loader" != raw ]; then
  dumps 0
  limited 90 python3 "$here/compare.py"
  status=$?
  { echo; echo "## Beside PyTorch and CuPy, exit status $status"; echo; cat "$step"; } >> "$report"
fi

# without CUDA, last: it talks to the kernel driver itself
if [ -x "$here/raw_bring_up" ]; then
  limited 60 "$here/raw_bring_up"
  status=$?
  { echo; echo "## Raw bring-up, exit status $status"; echo; echo '```text'; tail -120 "$step"; echo '```'; } >> "$report"
fi
rm -f "$step"
bad=$(grep -c -E '^\| [^|]*\|[^|]*\| (FAILED|TIMEOUT|CRASHED|SKIPPED) ' "$report")
good=$(grep -c -E '^\| [^|]*\|[^|]*\| ok ' "$report")
{ echo; echo "$good ok, $bad not"; } >> "$report"
cat "$report"
[ "$bad" -eq 0 ]
