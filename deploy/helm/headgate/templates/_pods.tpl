{{/* Environment variables of all processes. */}}
{{- define "headgate.env" -}}
- name: HEADGATE_DATABASE__URL
  valueFrom:
    secretKeyRef:
      {{- if .Values.database.cloudnativepg.enabled }}
      name: {{ include "headgate.cluster" . }}-app
      key: uri
      {{- else }}
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.key }}
      {{- end }}
{{- range .Values.secretEnv }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
{{- end }}
{{- end -}}

{{- define "headgate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "headgate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* A probe of a role. Arguments: root, role, path. */}}
{{- define "headgate.probe" -}}
httpGet:
  path: {{ .path }}
  port: {{ ternary "api" "metrics" (eq .role "api") }}
  {{- if eq .role "api" }}
  scheme: {{ include "headgate.scheme" .root | upper }}
  {{- end }}
timeoutSeconds: 5
{{- end -}}
