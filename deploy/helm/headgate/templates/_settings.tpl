{{/* The settings of all processes: those of the values, and what the chart sets. */}}
{{- define "headgate.settings" -}}
{{- $server := dict "listen" (printf "%s:8004" .Values.listenHost) -}}
{{- if .Values.tls.existingSecret -}}
{{- $_ := set $server "cert_file" "/etc/headgate/tls/tls.crt" -}}
{{- $_ := set $server "key_file" "/etc/headgate/tls/tls.key" -}}
{{- end -}}
{{- $fallback := list -}}
{{- range .Values.keys.fallback -}}
{{- $fallback = append $fallback (printf "/etc/headgate/keys/%s" .) -}}
{{- end -}}
{{- $credentials := dict "key_file" (printf "/etc/headgate/keys/%s" .Values.keys.credentials) -}}
{{- if $fallback -}}
{{- $_ := set $credentials "fallback_key_files" $fallback -}}
{{- end -}}
{{- $own := dict "server" $server "credentials" $credentials "database" (dict "data_dir" "/var/lib/headgate") -}}
{{- $settings := mustMergeOverwrite (deepCopy .Values.config) $own -}}
{{- if and .Values.ingress.enabled (not (get $settings.server "public_url")) -}}
{{- $_ := set $settings.server "public_url" (printf "https://%s" .Values.ingress.host) -}}
{{- end -}}
{{- include "headgate.toml" (dict "path" "" "table" $settings) -}}
{{- end -}}

{{/* A table as TOML. Arguments: path, with a dot at its end or empty; table. */}}
{{- define "headgate.toml" -}}
{{- $path := .path -}}
{{- $table := .table -}}
{{- range $name := keys $table | sortAlpha -}}
{{- $value := get $table $name -}}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value) (include "headgate.areTables" $value)) -}}
{{ include "headgate.toml.line" (dict "name" $name "value" $value) }}
{{ end -}}
{{- end -}}
{{- range $name := keys $table | sortAlpha -}}
{{- $value := get $table $name -}}
{{- $place := printf "%s%s" $path (include "headgate.toml.name" $name) -}}
{{- if kindIs "map" $value -}}
{{- if or $path (not (empty $value)) }}
[{{ $place }}]
{{ include "headgate.toml" (dict "path" (printf "%s." $place) "table" $value) -}}
{{- end -}}
{{- else if include "headgate.areTables" $value -}}
{{- range $one := $value }}
[[{{ $place }}]]
{{ range $name := keys $one | sortAlpha -}}
{{- $value := get $one $name -}}
{{- if not (kindIs "invalid" $value) -}}
{{ include "headgate.toml.line" (dict "name" $name "value" $value) }}
{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "headgate.areTables" -}}
{{- if and (kindIs "slice" .) (not (empty .)) -}}
{{- if kindIs "map" (first .) -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{- define "headgate.toml.line" -}}
{{ include "headgate.toml.name" .name }} = {{ include "headgate.toml.value" .value }}
{{- end -}}

{{/* YAML reads the name `on` of a setting as true, and Helm makes it a text. */}}
{{- define "headgate.toml.name" -}}
{{- if eq . "true" -}}on{{- else if regexMatch "^[A-Za-z0-9_-]+$" . -}}{{ . }}{{- else -}}{{ toJson . }}{{- end -}}
{{- end -}}

{{/* A value in one line. JSON's texts, numbers and Boolean values are valid TOML. */}}
{{- define "headgate.toml.value" -}}
{{- if kindIs "map" . -}}
{{- $parts := list -}}
{{- range $name := keys . | sortAlpha -}}
{{- if not (kindIs "invalid" (get $ $name)) -}}
{{- $parts = append $parts (include "headgate.toml.line" (dict "name" $name "value" (get $ $name))) -}}
{{- end -}}
{{- end -}}
{ {{ join ", " $parts }} }
{{- else if kindIs "slice" . -}}
{{- $parts := list -}}
{{- range . -}}
{{- $parts = append $parts (include "headgate.toml.value" .) -}}
{{- end -}}
[{{ join ", " $parts }}]
{{- else -}}
{{- toJson . -}}
{{- end -}}
{{- end -}}
