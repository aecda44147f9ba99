#!/bin/sh
# The end of a machine's boot script: signals success with its address, or failure.
#
#   SIGNAL_COMMAND="curl ..." machine.sh NAME ADDRESS
#
# SIGNAL_COMMAND is the stack's output signal_command.
set -eu
name=$1 address=$2
if [ -n "$address" ]; then
    signal="{\"id\": \"$name\", \"data\": \"$address\"}"
else
    signal="{\"id\": \"$name\", \"status\": \"FAILURE\", \"reason\": \"$name has no address\"}"
fi
eval "$SIGNAL_COMMAND --fail --silent --show-error --retry 5 --data-binary '$signal'"
