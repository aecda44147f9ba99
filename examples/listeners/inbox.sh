#!/bin/sh
# Lists waiting hooks (`inbox.sh`) and answers them (`inbox.sh HOOK continue [REASON]`) with curl.
set -eu
api=${HEADGATE_URL:-http://127.0.0.1:8004}/v1/${HEADGATE_PROJECT:-default}
who="X-Auth-User: ${HEADGATE_USER:-$(id -un)}"
if [ $# -lt 2 ]; then
    exec curl -sS --fail-with-body -H "$who" "$api/hooks?state=waiting"
fi
# The JSON is not escaped, so remove quotes and backslashes from the reason.
reason=$(printf '%s' "${3:-}" | tr -d '"\\' | tr '\n\t' '  ')
exec curl -sS --fail-with-body -H "$who" -H 'Content-Type: application/json' \
    -d "{\"decision\": \"$2\", \"reason\": \"$reason\"}" "$api/hooks/$1/signal"
