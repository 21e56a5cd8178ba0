{{- define "scrapeyard.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "scrapeyard.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "scrapeyard.selector" -}}
app.kubernetes.io/name: scrapeyard
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "scrapeyard.labels" -}}
{{ include "scrapeyard.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* What every pod has: another user than root, no rights, a read-only root. */}}
{{- define "scrapeyard.pod" -}}
serviceAccountName: {{ include "scrapeyard.name" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- if kindIs "bool" .root.Values.hostUsers }}
hostUsers: {{ .root.Values.hostUsers }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "scrapeyard.selector" . | nindent 8 }}
{{- end }}

{{- define "scrapeyard.container" -}}
image: {{ include "scrapeyard.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args: [{{ .role }}]
{{- if .root.Values.existingSecret }}
envFrom:
  - secretRef: {name: {{ .root.Values.existingSecret }}}
{{- else }}
{{- fail "existingSecret: name the Secret with DATABASE_URL, REDIS_URL, SCRAPEYARD_AUTH__PEPPER and SCRAPEYARD_SECRETS__MASTER_KEY" }}
{{- end }}
{{- end }}

{{- define "scrapeyard.env" -}}
- {name: SCRAPEYARD_TELEMETRY__METRICS_PORT, value: "9464"}
{{- range $name, $value := .root.Values.settings }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- define "scrapeyard.mounts" -}}
- {name: data, mountPath: /var/lib/scrapeyard}
- {name: tmp, mountPath: /tmp}
{{- if .root.Values.caSecret }}
- {name: ca, mountPath: /etc/scrapeyard/ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "scrapeyard.volumes" -}}
- {name: tmp, emptyDir: {}}
{{- with .root.Values.caSecret }}
- {name: ca, secret: {secretName: {{ . }}}}
{{- end }}
{{- end }}

{{- define "scrapeyard.probes" -}}
startupProbe:
  {{- .probe | nindent 2 }}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  {{- .probe | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}
