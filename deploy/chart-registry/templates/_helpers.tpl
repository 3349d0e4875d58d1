{{- /* The labels that Helm's objects have besides app.kubernetes.io/name. */}}
{{- define "liqo-broker-registry.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "liqo-broker-registry.image" -}}
{{- with .Values.image.registry }}{{ . }}/{{ end }}{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* The pod, with SQLite or PostgreSQL. */}}
{{- define "liqo-broker-registry.pod" -}}
{{- $sqlite := not .Values.postgres.existingSecret }}
  template:
    metadata:
      labels:
        {{- with .Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        app.kubernetes.io/name: liqo-broker-registry
      {{- with .Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: liqo-broker-registry
      automountServiceAccountToken: false
      enableServiceLinks: false
      {{- with .Values.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      {{- with .Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- toYaml .Values.podSecurityContext | nindent 8 }}
      containers:
        - name: registry
          image: {{ include "liqo-broker-registry.image" . }}
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          command: [/usr/bin/registry]
          args:
            - serve
            - --metrics-address=:8445 # NetworkPolicy liqo-broker-registry says for whom.
            {{- if .Values.tls.existingSecret }}
            - --tls-cert-file=/etc/liqo-broker/tls/tls.crt
            - --tls-private-key-file=/etc/liqo-broker/tls/tls.key
            {{- else if .Values.key.existingSecret }}
            - --key-file=/etc/liqo-broker/key/registry.key
            {{- else }}
            - --key-file=/var/lib/liqo-broker/registry.key
            {{- end }}
            {{- if .Values.authorities.existingConfigMap }}
            - --ca-file=/etc/liqo-broker/authorities/ca.crt
            {{- end }}
            {{- if .Values.anonymous.read }}
            - --anonymous-read
            {{- end }}
            {{- if .Values.autoApprove }}
            - --auto-approve
            {{- end }}
            {{- range .Values.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          env:
            - name: REGISTRY_STORE
              {{- if $sqlite }}
              value: sqlite:/var/lib/liqo-broker/registry.db
              {{- else }}
              valueFrom:
                secretKeyRef:
                  name: {{ .Values.postgres.existingSecret }}
                  key: {{ .Values.postgres.secretKey }}
              {{- end }}
            - name: GOMEMLIMIT
              value: {{ .Values.memoryTarget }}
          ports:
            - name: api
              containerPort: 8443
            - name: health
              containerPort: 8444
            - name: metrics
              containerPort: 8445
          livenessProbe:
            httpGet:
              path: /healthz
              port: health
            periodSeconds: 10
            timeoutSeconds: 10 # A process that gets no processor time is not stuck.
            failureThreshold: 6
          readinessProbe:
            httpGet:
              path: /readyz
              port: health
            periodSeconds: 5
            timeoutSeconds: 5
          resources:
            {{- toYaml .Values.resources | nindent 12 }}
          securityContext:
            {{- toYaml .Values.containerSecurityContext | nindent 12 }}
          volumeMounts:
            {{- if $sqlite }}
            - name: data
              mountPath: /var/lib/liqo-broker
            - name: tmp
              mountPath: /tmp
            {{- end }}
            {{- if .Values.tls.existingSecret }}
            - name: tls
              mountPath: /etc/liqo-broker/tls
              readOnly: true
            {{- else if .Values.key.existingSecret }}
            - name: key
              mountPath: /etc/liqo-broker/key
              readOnly: true
            {{- end }}
            {{- if .Values.authorities.existingConfigMap }}
            - name: authorities
              mountPath: /etc/liqo-broker/authorities
              readOnly: true
            {{- end }}
            {{- with .Values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        {{- if $sqlite }}
        - name: tmp # Where SQLite sorts.
          emptyDir:
            sizeLimit: 64Mi
        {{- with .Values.persistence.existingClaim }}
        - name: data
          persistentVolumeClaim:
            claimName: {{ . }}
        {{- end }}
        {{- end }}
        {{- if .Values.tls.existingSecret }}
        - name: tls
          secret:
            secretName: {{ .Values.tls.existingSecret }}
            defaultMode: 0440
        {{- else if .Values.key.existingSecret }}
        - name: key
          secret:
            secretName: {{ .Values.key.existingSecret }}
            defaultMode: 0440
        {{- end }}
        {{- with .Values.authorities.existingConfigMap }}
        - name: authorities
          configMap:
            name: {{ . }}
        {{- end }}
        {{- with .Values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}
