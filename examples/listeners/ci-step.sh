#!/bin/sh
# A step of a CI job that runs a command and answers a hook by its exit code.
#
#     SIGNAL_URL=... TOKEN=... ci-step.sh ./smoke-test
#
# SIGNAL_URL and TOKEN are `signal_url` and `token` of the notification that started the job. With
# GitHub Actions, the reason contains a link to the run.
set -u
: "${SIGNAL_URL:?is required: signal_url of the notification}" "${TOKEN:?is required: token of the notification}"
run="${GITHUB_SERVER_URL:-}${GITHUB_SERVER_URL:+/${GITHUB_REPOSITORY:-}/actions/runs/${GITHUB_RUN_ID:-}}"
"$@"
code=$?
if [ "$code" = 0 ]; then decision=continue; else decision=reject; fi
# Pass the token on standard input: every user of the machine can see arguments.
curl -sS --fail-with-body --retry 5 --retry-all-errors -H 'Content-Type: application/json' \
    -H @- -d "{\"decision\": \"$decision\", \"reason\": \"exit code $code $run\"}" "$SIGNAL_URL" <<EOF || exit 70
Authorization: Bearer $TOKEN
EOF
exit "$code"
