#!/bin/sh
# A step of a CI job that decides a hook: runs a command, and answers by its exit code.
#
#     SIGNAL_URL=... TOKEN=... ci-step.sh ./smoke-test
#
# SIGNAL_URL and TOKEN are `signal_url` and `token` of the notice that started the job. The reason
# links to the run where GitHub Actions (and what is like it) say which one it is.
set -u
: "${SIGNAL_URL:?is the signal_url of the notice}" "${TOKEN:?is the token of the notice}"
run="${GITHUB_SERVER_URL:-}${GITHUB_SERVER_URL:+/${GITHUB_REPOSITORY:-}/actions/runs/${GITHUB_RUN_ID:-}}"
"$@"
code=$?
if [ "$code" = 0 ]; then decision=continue; else decision=reject; fi
# The token goes in by a file descriptor: arguments of programs are seen by everybody.
curl -sS --fail-with-body --retry 5 --retry-all-errors -H 'Content-Type: application/json' \
    -H @- -d "{\"decision\": \"$decision\", \"reason\": \"exit code $code $run\"}" "$SIGNAL_URL" <<EOF || exit 70
Authorization: Bearer $TOKEN
EOF
exit "$code"
