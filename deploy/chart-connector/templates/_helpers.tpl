{{- /* The labels that Helm's objects have besides app.kubernetes.io/name. */}}
{{- define "liqo-broker-connector.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "liqo-broker-connector.image" -}}
{{- with .Values.image.registry }}{{ . }}/{{ end }}{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "liqo-broker-connector.settings" -}}
name: {{ .Values.name | quote }}
endpoint: {{ .Values.endpoint | quote }}
share: {{ .Values.share | toString | quote }}
drain: {{ .Values.drain | quote }}
{{- end }}

{{- define "liqo-broker-connector.guardImage" -}}
{{- with .Values.guard.image.registry | default .Values.image.registry }}{{ . }}/{{ end }}{{ .Values.guard.image.repository }}
{{- if .Values.guard.image.digest }}@{{ .Values.guard.image.digest }}{{ else }}:{{ .Values.guard.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* "true" where the admission policies are installed. */}}
{{- define "liqo-broker-connector.admission" -}}
{{- if eq (toString .Values.admissionPolicies.enabled) "auto" }}
{{- semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version }}
{{- else }}
{{- .Values.admissionPolicies.enabled }}
{{- end }}
{{- end }}
