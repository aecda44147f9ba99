{{/* The name of the objects. Suffixes have up to 18 characters. */}}
{{- define "headgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else if contains "headgate" .Release.Name -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-headgate" .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "headgate.selector" -}}
app.kubernetes.io/name: headgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "headgate.labels" -}}
{{ include "headgate.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "headgate.serviceAccount" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else -}}
{{- ternary (include "headgate.fullname" .) "default" .Values.serviceAccount.create -}}
{{- end -}}
{{- end -}}

{{/* The tag of a role. Arguments: root, role. */}}
{{- define "headgate.tag" -}}
{{- (get .root.Values.roles .role).tag | default .root.Values.image.tag | default .root.Chart.AppVersion -}}
{{- end -}}

{{- define "headgate.image" -}}
{{- printf "%s:%s" .root.Values.image.repository (include "headgate.tag" .) -}}
{{- end -}}

{{/* A tag as the value of a label, which is shorter, and ends with a letter or digit. */}}
{{- define "headgate.version" -}}
{{- regexReplaceAll "[^A-Za-z0-9]+$" (include "headgate.tag" . | splitList "@" | first | trunc 63) "" | quote -}}
{{- end -}}

{{- define "headgate.cluster" -}}
{{- include "headgate.fullname" . }}-db
{{- end -}}

{{- define "headgate.scheme" -}}
{{- ternary "https" "http" (ne .Values.tls.existingSecret "") -}}
{{- end -}}

{{/* The seconds of a duration of the settings: 90s, 30m, 2h or 1d. Others: 0; Headgate refuses them. */}}
{{- define "headgate.seconds" -}}
{{- $text := toString . -}}
{{- if regexMatch "^[0-9]+[smhd]$" $text -}}
{{- $unit := get (dict "s" 1 "m" 60 "h" 3600 "d" 86400) (regexFind "[smhd]$" $text) -}}
{{- mul (regexFind "^[0-9]+" $text | int64) $unit -}}
{{- else -}}
0
{{- end -}}
{{- end -}}
