#!/bin/sh
# Acts as the agent of the server in deploy.yaml, once: gets the config, runs it, reports the result.
#
#   agent.sh URL SERVER
#
# URL is the API with the project, SERVER is the server's ID. Requires curl and python3, and
# HEADGATE_TOKEN if the server requires authentication.
set -eu
api=$1 server=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

curl -sSf -H "X-Auth-Token: ${HEADGATE_TOKEN:-}" \
    "$api/software_deployments/metadata/$server" >"$work/metadata"

# Write the first waiting script, its inputs as shell variables, and the names of its outputs.
python3 - "$work" <<'PYTHON'
import json, pathlib, shlex, sys

work = pathlib.Path(sys.argv[1])
for config in json.loads((work / "metadata").read_text())["metadata"]:
    inputs = {item["name"]: item.get("value") for item in config["inputs"]}
    if config["group"] == "script" and "deploy_signal_id" in inputs:
        (work / "script").write_text(config["config"])
        lines = [f"export {name}={shlex.quote(str(value))}" for name, value in inputs.items()]
        (work / "inputs").write_text("\n".join(lines))
        (work / "outputs").write_text("\n".join(item["name"] for item in config["outputs"]))
        break
else:
    sys.exit("no deployment waits for this server")
PYTHON

. "$work/inputs"
export heat_outputs_path="$work/output"
code=0
sh "$work/script" >"$work/stdout" 2>"$work/stderr" || code=$?

python3 - "$work" "$code" >"$work/signal" <<'PYTHON'
import json, pathlib, sys

work, code = pathlib.Path(sys.argv[1]), int(sys.argv[2])
result = {"deploy_stdout": (work / "stdout").read_text(),
          "deploy_stderr": (work / "stderr").read_text(), "deploy_status_code": code}
for name in (work / "outputs").read_text().split():
    output = work / f"output.{name}"
    if output.exists():
        result[name] = output.read_text().strip()
print(json.dumps(result))
PYTHON

curl -sSf -X "$deploy_signal_verb" -H "Content-Type: application/json" \
    --data-binary "@$work/signal" "$deploy_signal_id" >/dev/null
echo "$deploy_resource_name: exit code $code"
