#!/bin/sh
# What a machine runs at the end of its boot script: says that it is ready, or why not.
#
#   TELL="curl ..." machine.sh NAME ADDRESS          TELL: the stack's output of that name
set -eu
name=$1 address=$2
if [ -n "$address" ]; then
    said="{\"id\": \"$name\", \"data\": \"$address\"}"
else
    said="{\"id\": \"$name\", \"status\": \"FAILURE\", \"reason\": \"$name has no address\"}"
fi
eval "$TELL --fail --silent --show-error --retry 5 --data-binary '$said'"
