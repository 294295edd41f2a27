{{/*
The optimizers' pods, of a StatefulSet or, with its operator, of a LeaderWorkerSet.
*/}}

{{/* Host names of the group's pods below their Service, as a JSON array, in the order of nodes. Call with the root. */}}
{{- define "five.optimizerHosts" -}}
{{- $name := include "five.componentName" (dict "root" . "component" "optimizer") }}
{{- $hosts := list }}
{{- range $node := until (int .Values.optimizer.replicas) }}
{{- $hosts = append $hosts (ternary (printf "%s-0" $name) (printf "%s-0-%d" $name $node) (eq $node 0)) }}
{{- end }}
{{- toJson $hosts }}
{{- end }}

{{/*
Hash of a group's image and configuration: it keeps pods from before and after an upgrade apart. Call with the component.
*/}}
{{- define "five.groupRevision" -}}
{{- printf "%s %s" (include "five.image" .) (include "five.configPart" .) | sha256sum | trunc 8 }}
{{- end }}

{{/* Kueue's labels of the StatefulSet or LeaderWorkerSet. Call with the root. */}}
{{- define "five.gangLabels" -}}
{{- with .Values.optimizer.gang }}
{{- if and .queue (not .podGroup) }}
kueue.x-k8s.io/queue-name: {{ .queue | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Refusals, one to a line. Call with the root. */}}
{{- define "five.gang.problems" -}}
{{- $gang := .Values.optimizer.gang }}
{{- if and $gang.podGroup (not $gang.queue) }}
optimizer.gang.podGroup: a pod group is admitted by a queue; name it in optimizer.gang.queue
{{- end }}
{{- if and $gang.podGroup (eq $gang.form "LeaderWorkerSet") }}
optimizer.gang.podGroup: Kueue makes the group of a LeaderWorkerSet itself; leave it out
{{- end }}
{{- if gt (int .Values.optimizer.minReplicas) (int .Values.optimizer.replicas) }}
optimizer.minReplicas {{ .Values.optimizer.minReplicas }}: at most optimizer.replicas ({{ .Values.optimizer.replicas }})
{{- end }}
{{- end }}

{{/* Template of the pods. Call with the component. */}}
{{- define "five.optimizerPod" -}}
{{- $optimizer := . }}
{{- $name := include "five.componentName" . }}
{{- $ranks := int (include "five.optimizerRanks" .root) }}
{{- $group := gt (int (include "five.optimizerCount" .root)) 1 }}
{{- $gang := .values.gang }}
{{- $waiting := "/tmp/group-waiting" }}
{{- $timing := merge dict (deepCopy .values.probes) .root.Values.global.probes -}}
metadata:
  labels:
    {{- include "five.podLabels" $optimizer | nindent 4 }}
    {{- with include "five.extraPodLabels" $optimizer }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with include "five.blobsLabel" $optimizer }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- if $gang.podGroup }}
    kueue.x-k8s.io/queue-name: {{ $gang.queue | quote }}
    kueue.x-k8s.io/pod-group-name: {{ $name }}
    {{- end }}
  annotations:
    {{- if $gang.podGroup }}
    kueue.x-k8s.io/pod-group-total-count: {{ $.root.Values.optimizer.replicas | quote }}
    {{- end }}
    {{- include "five.configChecksum" $optimizer | nindent 4 }}
    {{- with include "five.podAnnotations" $optimizer }}
    {{- . | nindent 4 }}
    {{- end }}
spec:
  {{- include "five.podSettings" $optimizer | nindent 2 }}
  {{- with $gang.schedulerName }}
  schedulerName: {{ . }}
  {{- end }}
  containers:
    - name: optimizer
      image: {{ include "five.image" $optimizer }}
      imagePullPolicy: {{ $.root.Values.global.image.pullPolicy }}
      {{- if $group }}
      # An agent starts the ranks of this pod once enough pods have come, which they learn from the state's Redis. When one
      # is lost or comes, all agents start theirs again from the last checkpoint.
      command:
        - tini
        - --
        - python
        - -m
        - five.services.optimizer.agent
      args:
        - --nodes={{ with int $.root.Values.optimizer.minReplicas }}{{ . }}:{{ end }}{{ $.root.Values.optimizer.replicas }}
        - --ranks={{ $ranks }}
        - --max-restarts={{ int $.root.Values.optimizer.maxRestarts }}
        - --group={{ include "five.groupRevision" $optimizer }}
        - --address=$(POD_IP)
        - --waiting={{ $waiting }}
        - --replaced-last={{ $name }}-0
        - --
        - --config=/etc/five/run.yaml
        - --id=hostname
        - --port=50051
        - --metrics-port=9100
      {{- else }}
      args:
        - --config=/etc/five/run.yaml
        - --id=hostname
        - --port=50051
        - --metrics-port=9100
      {{- end }}
      env:
        {{- if $group }}
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        {{- end }}
        {{- include "five.env" $optimizer | trim | nindent 8 }}
      ports:
        {{- range $rank := until $ranks }}
        {{- $suffix := ternary (printf "-%d" $rank) "" (gt $rank 0) }}
        - name: grpc{{ $suffix }}
          containerPort: {{ add 50051 $rank }}
        - name: metrics{{ $suffix }}
          containerPort: {{ add 9100 $rank }}
        {{- end }}
      {{- if $group }}
      # Every rank must respond. The agent starts ranks when enough pods have come, which may take as long as machines and
      # images do: startup allows an hour. A pod that waits for others counts as started, because a rolling update replaces
      # one after the other; the pod replaced last does not, and shows whether the group has started. There is no
      # readiness probe: nobody calls the pods by a load-balanced name.
      {{- $probe := list "python" "-m" "rapid.telemetry.probe" "9100" (toString $ranks) (printf "--waiting=%s" $waiting) }}
      {{- $threshold := max (int $timing.startup.failureThreshold) (div 3660 (int $timing.startup.periodSeconds)) }}
      startupProbe:
        exec:
          command: {{ toJson $probe }}
        {{- toYaml (merge (dict "failureThreshold" $threshold "timeoutSeconds" $timing.liveness.timeoutSeconds) $timing.startup) | nindent 8 }}
      livenessProbe:
        exec:
          command: {{ toJson $probe }}
        {{- toYaml $timing.liveness | nindent 8 }}
      {{- else }}
      {{- include "five.probes" $optimizer | nindent 6 }}
      {{- end }}
      resources:
        {{- include "five.resources" $optimizer | nindent 8 }}
      securityContext:
        {{- include "five.containerSecurityContext" $optimizer | nindent 8 }}
      volumeMounts:
        - name: shm
          mountPath: /dev/shm
        {{- include "five.volumeMounts" $optimizer | nindent 8 }}
  volumes:
    - name: shm
      emptyDir:
        medium: Memory
        sizeLimit: {{ $.root.Values.optimizer.shmSize }}
    {{- include "five.volumes" $optimizer | nindent 4 }}
{{- end }}
