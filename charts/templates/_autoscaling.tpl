{{/*
"replicas: N" of a Deployment: the values' number, or with an autoscaler the present number in the cluster. So an upgrade
neither resets an autoscaler's number nor starts with one pod when it switches an autoscaler on. With an autoscaler empty at
the first installation and without access to the cluster. Call with the component, and "replicas".
*/}}
{{- define "five.replicas" -}}
{{- if not (include "five.autoscaled" .) -}}
replicas: {{ .replicas }}
{{- else }}
{{- with (lookup "apps/v1" "Deployment" .root.Release.Namespace (include "five.componentName" .)).spec -}}
replicas: {{ .replicas }}
{{- end }}
{{- end }}
{{- end }}

{{/*
HorizontalPodAutoscalers, where autoscaling.mode is hpa. Call with (dict "root" $ "component" "rollout"), and "pool".
*/}}
{{- define "five.hpa" -}}
{{- $scaling := .root.Values.autoscaling }}
{{- $bounds := index $scaling .component }}
{{- $signal := index $scaling.hpa .component -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ include "five.componentName" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "five.labels" . | nindent 4 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "five.componentName" . }}
  minReplicas: {{ $bounds.minReplicas }}
  maxReplicas: {{ $bounds.maxReplicas }}
  metrics:
    {{- if $scaling.hpa.cpuFallback }}
    # A fallback for a cluster without the platform's own signals. It neither sees whether experience is short nor how
    # long requests wait.
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ $scaling.hpa.cpuFallbackPercent }}
    {{- else if $signal.externalMetric }}
    - type: External
      external:
        metric:
          name: {{ $signal.externalMetric }}
          selector:
            matchLabels:
              run: {{ include "five.runName" .root | quote }}
              {{- if and .pool (gt (len .root.Values.inference.pools) 1) }}
              five_inference_pool: {{ .pool | quote }}
              {{- end }}
        # Value, not AverageValue: the number of pods is multiplied by metric / target.
        target:
          type: Value
          value: {{ $signal.target | quote }}
    {{- end }}
    {{- with $signal.metrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  behavior:
    scaleUp:
      stabilizationWindowSeconds: 60
      policies:
        - {type: Percent, value: 50, periodSeconds: 60}
        - {type: Pods, value: 2, periodSeconds: 60}
    # Slowly: a rollout that is removed loses its unfinished segments.
    scaleDown:
      stabilizationWindowSeconds: {{ $scaling.hpa.scaleDownStabilizationSeconds }}
      policies:
        - {type: Percent, value: 10, periodSeconds: 120}
        - {type: Pods, value: 1, periodSeconds: 120}
{{- end }}

{{/* Refusals, one to a line. Call with the root. */}}
{{- define "five.autoscaling.problems" -}}
{{- $scaling := .Values.autoscaling }}
{{- range $component := ternary list (list "rollout" "inference") (eq $scaling.mode "none") }}
{{- $bounds := index $scaling $component }}
{{- if gt (int $bounds.minReplicas) (int $bounds.maxReplicas) }}
{{ printf "autoscaling.%s: minReplicas %d is above maxReplicas %d" $component (int $bounds.minReplicas) (int $bounds.maxReplicas) }}
{{- end }}
{{- $signal := index $scaling.hpa $component }}
{{- if and (eq $scaling.mode "hpa") (not (or $signal.externalMetric $signal.metrics $scaling.hpa.cpuFallback)) }}
{{ printf "autoscaling.hpa.%s: there is nothing to follow. Name an externalMetric or metrics, or accept hpa.cpuFallback" $component }}
{{- end }}
{{- end }}
{{- end }}
