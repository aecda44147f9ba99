#!/bin/sh
# The inbox with curl alone: `inbox.sh` lists what waits, `inbox.sh HOOK continue [REASON]` answers.
set -eu
api=${HEADGATE_URL:-http://127.0.0.1:8004}/v1/${HEADGATE_PROJECT:-default}
who="X-Auth-User: ${HEADGATE_USER:-$(id -un)}"
if [ $# -lt 2 ]; then
    exec curl -sS --fail-with-body -H "$who" "$api/hooks?state=waiting"
fi
# What is said is put into JSON by hand here, so quotes and backslashes are left out of the reason.
reason=$(printf '%s' "${3:-}" | tr -d '"\\' | tr '\n\t' '  ')
exec curl -sS --fail-with-body -H "$who" -H 'Content-Type: application/json' \
    -d "{\"decision\": \"$2\", \"reason\": \"$reason\"}" "$api/hooks/$1/signal"
