{{- /* The labels that Helm's objects have besides app.kubernetes.io/name. */}}
{{- define "liqo-broker.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "liqo-broker.image" -}}
{{- with .Values.image.registry }}{{ . }}/{{ end }}{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "liqo-broker.transitImage" -}}
{{- with .Values.transit.image.registry | default .Values.image.registry }}{{ . }}/{{ end }}{{ .Values.transit.image.repository }}
{{- if .Values.transit.image.digest }}@{{ .Values.transit.image.digest }}{{ else }}:{{ .Values.transit.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* The line of Liqo's versions, "0.9" or "1", by the kinds of which a line has its records of peers (pkg/liqo/lines). */}}
{{- define "liqo-broker.line" -}}
{{- $of09 := .Capabilities.APIVersions.Has "discovery.liqo.io/v1alpha1/ForeignCluster" }}
{{- $of1 := .Capabilities.APIVersions.Has "core.liqo.io/v1beta1/ForeignCluster" }}
{{- if ne (toString (.Values.liqo.line | default "auto")) "auto" }}
{{- .Values.liqo.line }}
{{- else if and $of09 $of1 }}
{{- fail "the API server has the kinds of Liqo 0.9 and of Liqo 1.x: delete the definitions of the one that does not run: the daemon would not start" }}
{{- else if $of09 }}0.9
{{- else if $of1 }}1
{{- else }}
{{- fail "nothing says which Liqo the broker is for: install Liqo v0.9.4 or v1.2.0 first, or, where Helm has no API server to ask, set the value liqo.line to 0.9 or 1" }}
{{- end }}
{{- end }}

{{- /* "true" where the admission policies are installed. */}}
{{- define "liqo-broker.admission" -}}
{{- if eq (toString .Values.admissionPolicies.enabled) "auto" }}
{{- semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version }}
{{- else }}
{{- .Values.admissionPolicies.enabled }}
{{- end }}
{{- end }}
