{{- /* The labels that Helm's objects have besides app.kubernetes.io/name. */}}
{{- define "liqo-broker-agent.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* "true" where the policy is installed that keeps the namespaces with keys here. Another release, or people, may have brought it. */}}
{{- define "liqo-broker-agent.systemNamespaces" -}}
{{- if eq (toString .Values.systemNamespaces) "auto" }}
{{- $name := "system-namespaces.brokering.liqo.io" }}
{{- $there := lookup "admissionregistration.k8s.io/v1" "ValidatingAdmissionPolicy" "" $name | default dict }}
{{- $annotations := ($there.metadata | default dict).annotations | default dict }}
{{- or (not $there) (eq (index $annotations "meta.helm.sh/release-name" | default "") .Release.Name) }}
{{- else }}
{{- .Values.systemNamespaces }}
{{- end }}
{{- end }}

{{- define "liqo-broker-agent.image" -}}
{{- with .Values.image.registry }}{{ . }}/{{ end }}{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
