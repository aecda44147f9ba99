{{/* Values that are missing or contradict each other: one sentence for each, as a JSON list. */}}
{{- define "headgate.problems" -}}
{{- $problems := concat
    (include "headgate.problems.required" . | fromJsonArray)
    (include "headgate.problems.settings" . | fromJsonArray)
    (include "headgate.problems.secrets" . | fromJsonArray)
    (include "headgate.problems.database" . | fromJsonArray)
    (include "headgate.problems.roles" . | fromJsonArray)
    (include "headgate.problems.access" . | fromJsonArray) -}}
{{- toJson $problems -}}
{{- end -}}

{{- define "headgate.problems.required" -}}
{{- $found := list -}}
{{- if not .Values.image.repository -}}
{{- $found = append $found "image.repository is empty. Build the image from deploy/container/Containerfile, and name where you pushed it." -}}
{{- end -}}
{{- if not .Values.keys.existingSecret -}}
{{- $found = append $found "keys.existingSecret is empty. Create a Secret with credentials.key and audit.key as README.md describes, and name it." -}}
{{- end -}}
{{- if and (ne .Values.keys.credentials "") (eq .Values.keys.credentials .Values.keys.audit) -}}
{{- $found = append $found "keys.credentials and keys.audit name the same entry. They are two keys: use two entries." -}}
{{- end -}}
{{- range $name := .Values.keys.fallback -}}
{{- if has $name (list $.Values.keys.credentials $.Values.keys.audit) -}}
{{- $found = append $found (printf "keys.fallback has %q, which is the entry of another key. Name entries with the next or the previous encryption key." $name) -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* Settings that the chart sets, with what to do instead. */}}
{{- define "headgate.owned" -}}
{{- toJson (dict
    "server.listen" "Remove it, and set listenHost if the host must differ."
    "server.processes" "Remove it, and set roles.api.replicas: each pod runs one process."
    "server.cert_file" "Remove it, and set tls.existingSecret."
    "server.key_file" "Remove it, and set tls.existingSecret."
    "database.url" "Remove it, and set database.existingSecret: the URL has a password."
    "database.data_dir" "Remove it: pods keep nothing."
    "database.binaries" "Remove it: the chart runs no embedded database."
    "database.account" "Remove it: the chart runs no embedded database."
    "credentials.key_file" "Remove it, and set keys.existingSecret."
    "credentials.fallback_key_files" "Remove it, and set keys.fallback."
    "audit.key_file" "Remove it, and set keys.audit."
    "audit.checkpoints_file" "Remove it, and set audit.checkpoints.existingClaim."
    "metrics.address" "Remove it: all roles except api serve metrics at port 9464.") -}}
{{- end -}}

{{/* Settings that the chart sets, or that do not work in it. */}}
{{- define "headgate.problems.settings" -}}
{{- $found := list -}}
{{- $owned := include "headgate.owned" . | fromJson -}}
{{- $config := .Values.config -}}
{{- range $place := keys $owned | sortAlpha -}}
{{- $parts := splitList "." $place -}}
{{- if hasKey (get $config (first $parts) | default dict) (last $parts) -}}
{{- $found = append $found (printf "config.%s is set by the chart. %s" $place (get $owned $place)) -}}
{{- end -}}
{{- end -}}
{{- if dig "cells" "databases" list $config -}}
{{- $found = append $found "config.cells.databases is set, but the chart runs the processes of one database, and everyone who can read the ConfigMap could read the passwords of the cells. Install the chart for the other roles of each cell, with roles.api.replicas 0, and run the API of the cells without it, as docs/how-to/run-at-scale.md says." -}}
{{- end -}}
{{- if has (dig "auth" "mode" "none" $config) (list "none" "") -}}
{{- $found = append $found "config.auth.mode is \"none\", which gives every client every right and works on one machine only. Set \"tokens\" or \"keystone\"." -}}
{{- end -}}
{{- if dig "resource_types" "command" "enabled" false $config -}}
{{- $found = append $found "config.resource_types.command.enabled is true, but Headgate::Command runs programs as another account, which only root can do. The pods of the chart do not run as root: run engines with Headgate::Command on machines." -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* Secrets that are written in the settings, and references to Secrets. */}}
{{- define "headgate.problems.secrets" -}}
{{- $found := list -}}
{{- $config := .Values.config -}}
{{- $written := dict -}}
{{- if dig "database" "pooler_url" "" $config -}}
{{- $_ := set $written "database.pooler_url" "HEADGATE_DATABASE__POOLER_URL" -}}
{{- end -}}
{{- if dig "database" "read_url" "" $config -}}
{{- $_ := set $written "database.read_url" "HEADGATE_DATABASE__READ_URL" -}}
{{- end -}}
{{- range $place, $name := dict "auth.keystone.password" "HEADGATE_AUTH__KEYSTONE__PASSWORD" "auth.oidc.client_secret" "HEADGATE_AUTH__OIDC__CLIENT_SECRET" -}}
{{- $parts := splitList "." $place -}}
{{- if dig (index $parts 0) (index $parts 1) (index $parts 2) "" $config -}}
{{- $_ := set $written $place $name -}}
{{- end -}}
{{- end -}}
{{- range $place, $name := dict "channels.amqp.url" "HEADGATE_CHANNELS__AMQP__URL" "observer.amqp.url" "HEADGATE_OBSERVER__AMQP__URL" "channels.webhook.proxy" "HEADGATE_CHANNELS__WEBHOOK__PROXY" -}}
{{- $parts := splitList "." $place -}}
{{- $value := dig (index $parts 0) (index $parts 1) (index $parts 2) "" $config -}}
{{- range $url := ternary $value (list $value) (kindIs "slice" $value) -}}
{{- if regexMatch "//[^/@]*:[^/@]+@" (toString $url) -}}
{{- $_ := set $written $place $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $number, $one := dig "subscriptions" list $config -}}
{{- if or (has (get $one "channel") (list "slack" "teams")) (regexMatch "//[^/@]*:[^/@]+@" (get $one "target" | toString)) -}}
{{- $found = append $found (printf "config.subscriptions[%d].target is a secret, and everyone who can read the ConfigMap could read it. Remove the subscription, and create it with `headgate subscription create`." $number) -}}
{{- end -}}
{{- if $one.secret -}}
{{- $found = append $found (printf "config.subscriptions[%d].secret is a secret, and everyone who can read the ConfigMap could read it. Remove it: Headgate then creates one and keeps it encrypted." $number) -}}
{{- end -}}
{{- end -}}
{{- range $credential, $one := dig "resource_types" "http" "credentials" dict $config -}}
{{- if $one.secret -}}
{{- $_ := set $written (printf "resource_types.http.credentials.%s.secret" $credential) (printf "HEADGATE_RESOURCE_TYPES__HTTP__CREDENTIALS__%s__SECRET" (upper $credential)) -}}
{{- end -}}
{{- end -}}
{{- range $place, $name := $written -}}
{{- $found = append $found (printf "config.%s has a secret, and everyone who can read the ConfigMap could read it. Remove it, put it into a Secret, and add {name: %s, secret: NAME, key: ENTRY} to secretEnv." $place $name) -}}
{{- end -}}
{{- $own := dict -}}
{{- range $place, $remedy := include "headgate.owned" . | fromJson -}}
{{- $_ := set $own (printf "HEADGATE_%s" ($place | replace "." "__" | upper)) $remedy -}}
{{- end -}}
{{- $_ := set $own "HEADGATE_METRICS__NEEDS" "Remove it: the NetworkPolicy says who can read the metrics of all roles except api." -}}
{{- $names := list -}}
{{- range .Values.secretEnv -}}
{{- if hasKey $own .name -}}
{{- $found = append $found (printf "secretEnv has %s, which is set by the chart. %s" .name (get $own .name)) -}}
{{- else if has .name $names -}}
{{- $found = append $found (printf "secretEnv has %s twice. Remove one of them." .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- range $role, $values := .Values.roles -}}
{{- range $name := keys $values.env | sortAlpha -}}
{{- $value := get $values.env $name -}}
{{- $place := printf "roles.%s.env.%s" $role $name -}}
{{- if hasKey $own $name -}}
{{- $found = append $found (printf "%s is set by the chart. %s" $place (get $own $name)) -}}
{{- else if has $name $names -}}
{{- $found = append $found (printf "%s is set by secretEnv. Remove it." $place) -}}
{{- else if hasPrefix "HEADGATE_CELLS__" $name -}}
{{- $found = append $found (printf "%s is set, but the chart runs the processes of one database. Run the API of cells without it, as docs/how-to/run-at-scale.md says." $place) -}}
{{- else if or (regexMatch "__(PASSWORD|SECRET|CLIENT_SECRET|READ_URL|POOLER_URL)$" $name) (regexMatch "//[^/@]*:[^/@]+@" $value) -}}
{{- $found = append $found (printf "%s has a secret, and everyone who can read the Deployment could read it. Remove it, put it into a Secret, and add {name: %s, secret: NAME, key: ENTRY} to secretEnv." $place $name) -}}
{{- else if and (eq $name "HEADGATE_AUTH__MODE") (has $value (list "none" "")) -}}
{{- $found = append $found (printf "%s is \"none\", which gives every client every right. Remove it." $place) -}}
{{- else if and (eq $name "HEADGATE_RESOURCE_TYPES__COMMAND__ENABLED") (ne (lower $value) "false") -}}
{{- $found = append $found (printf "%s is set, but the pods of the chart do not run as root: run engines with Headgate::Command on machines." $place) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $files := list -}}
{{- range .Values.secretFiles -}}
{{- if has .name $files -}}
{{- $found = append $found (printf "secretFiles has the name %q twice. Choose another one." .name) -}}
{{- end -}}
{{- $files = append $files .name -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{- define "headgate.problems.database" -}}
{{- $found := list -}}
{{- $database := .Values.database -}}
{{- $cluster := $database.cloudnativepg -}}
{{- if and $cluster.enabled $database.existingSecret -}}
{{- $found = append $found "database.existingSecret and database.cloudnativepg.enabled name two databases. Use one of them." -}}
{{- else if not (or $cluster.enabled $database.existingSecret) -}}
{{- $found = append $found "There is no database. Set database.existingSecret to a Secret with the URL of one, or database.cloudnativepg.enabled to true." -}}
{{- end -}}
{{- if $cluster.enabled -}}
{{- if and $cluster.synchronous (lt (int $cluster.instances) 3) -}}
{{- $found = append $found (printf "database.cloudnativepg.synchronous is true, so a commit waits for a replica, but instances is %d: commits stop while one of them is away. Use 3 instances, or set synchronous to false." (int $cluster.instances)) -}}
{{- end -}}
{{- $needed := 0 -}}
{{- range $role, $values := .Values.roles -}}
{{- $pool := get $values.env "HEADGATE_DATABASE__POOL" | default (dig "database" "pool" 10 $.Values.config) | int -}}
{{- $pods := ternary 0 (add 1 $values.replicas | int) (eq (int $values.replicas) 0) -}}
{{- $needed = add $needed (mul $pods (add $pool 2)) -}}
{{- end -}}
{{- if gt (int $needed) (sub (int $cluster.maxConnections) 10 | int) -}}
{{- $found = append $found (printf "The processes open up to %d connections, with one more pod of each role during an upgrade, and database.cloudnativepg.maxConnections is %d, of which PostgreSQL and its operator need 10. Raise it to at least %d, or lower config.database.pool." (int $needed) (int $cluster.maxConnections) (add $needed 10 | int)) -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{- define "headgate.problems.roles" -}}
{{- $found := list -}}
{{- $api := include "headgate.tag" (dict "root" $ "role" "api") | splitList "@" | first -}}
{{- $engine := include "headgate.tag" (dict "root" $ "role" "engine") | splitList "@" | first -}}
{{- $version := "^v?[0-9]+\\.[0-9]+\\.[0-9]+(-[0-9A-Za-z.-]+)?$" -}}
{{- if and (regexMatch $version $api) (regexMatch $version $engine) -}}
{{- if semverCompare (printf ">%s" (trimPrefix "v" $engine | splitList "-" | first)) (trimPrefix "v" $api | splitList "-" | first) -}}
{{- $found = append $found (printf "The tag of the API is %s and that of the engines %s. Engines are upgraded first and the API last: an engine may not know what a newer API accepts." $api $engine) -}}
{{- end -}}
{{- end -}}
{{- $drain := dig "engine" "drain" "20s" .Values.config -}}
{{- range $role, $values := .Values.roles -}}
{{- $own := get $values.env "HEADGATE_ENGINE__DRAIN" | default $drain -}}
{{- /* A pod of the API waits 5 s before it gets the signal to end. */ -}}
{{- $before := ternary 5 0 (eq $role "api") -}}
{{- if ge (add (include "headgate.seconds" $own | int) $before | int) (int $values.terminationGracePeriodSeconds) -}}
{{- $found = append $found (printf "roles.%s.terminationGracePeriodSeconds is %d, but operations have %s to finish ([engine] drain)%s. Make it longer." $role (int $values.terminationGracePeriodSeconds) $own (ternary ", and a pod of the API waits 5s before" "" (eq $role "api"))) -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{- define "headgate.problems.access" -}}
{{- $found := list -}}
{{- $monitor := .Values.serviceMonitor -}}
{{- if .Values.ingress.enabled -}}
{{- if not .Values.ingress.host -}}
{{- $found = append $found "ingress.host is empty. Name the host at which clients reach Headgate." -}}
{{- end -}}
{{- if not (dig "server" "trusted_proxies" list .Values.config) -}}
{{- $found = append $found "ingress.enabled is true, but config.server.trusted_proxies is empty. Set it to the network of the controller's pods; otherwise all clients have one address, and lock each other out." -}}
{{- end -}}
{{- end -}}
{{- if $monitor.enabled -}}
{{- if and (not $monitor.apiToken.existingSecret) (ne (dig "metrics" "needs" "monitor" .Values.config) "nothing") -}}
{{- $found = append $found "serviceMonitor.apiToken.existingSecret is empty, and the API does not show its metrics without a token. Name a Secret with a token of the role monitor." -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.metricsFrom) -}}
{{- $found = append $found "serviceMonitor.enabled is true, but networkPolicy.metricsFrom is empty, so Prometheus cannot connect. Name its namespace: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]." -}}
{{- end -}}
{{- if and .Values.tls.existingSecret (not $monitor.tlsConfig) -}}
{{- $found = append $found "serviceMonitor.tlsConfig is empty, but the API serves HTTPS, and Prometheus connects to IP addresses. Set serverName to the host of the certificate." -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}
