#!/usr/bin/env bash
# Assess the API, write the summary of the step and the reports; never fail: the last step does.
set -uo pipefail

folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/masa-report.XXXXXX")
# A store of its own: a run of another day must never be reported as this one's.
store=$(mktemp -d "${RUNNER_TEMP:-/tmp}/masa-store.XXXXXX")/masa.db

words=(assess --config "$MASA_CONFIG" --store "$store" --decide --yes --quiet)
[ -n "${MASA_CANARY:-}" ] && [ "$MASA_CANARY" != 0 ] && words+=(--canary "$MASA_CANARY" --canary-ok)
[ -n "${MASA_BASELINE:-}" ] && words+=(--baseline "$MASA_BASELINE")
[ -n "${MASA_BUDGET:-}" ] && words+=(--budget "$MASA_BUDGET")
# Options are separated by blanks; nothing in them is expanded.
read -r -a more <<<"${MASA_ARGUMENTS:-}"
words+=(${more[@]+"${more[@]}"})

masa "${words[@]}" >"$folder/report.txt" 2>"$folder/log.txt"
code=$?
cat "$folder/report.txt"
cat "$folder/log.txt" >&2

verdict=error
if masa report --config "$MASA_CONFIG" --store "$store" --json --quiet >"$folder/report.json" 2>>"$folder/log.txt"; then
  verdict=$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["verdict"])' "$folder/report.json")
  for name in report.html report.md report.xml; do
    masa report --config "$MASA_CONFIG" --store "$store" --output "$folder/$name" --quiet
  done
else
  rm -f "$folder/report.json"
  {
    echo '> [!WARNING]'
    echo "> **NOT MEASURED** masa ended with exit code $code"
    echo
    echo '```'
    tail -n 20 "$folder/log.txt" | tr -d '`'
    echo '```'
  } >"$folder/report.md"
fi

cat "$folder/report.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
{
  echo "verdict=$verdict"
  echo "exit-code=$code"
  echo "report=$folder"
} >>"${GITHUB_OUTPUT:-/dev/null}"
exit 0
