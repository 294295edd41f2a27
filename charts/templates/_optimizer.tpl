{{/*
The optimizers' pods, and how a group of them is placed: a StatefulSet, or a LeaderWorkerSet where its operator is there.
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

{{/* Labels of the object that makes the pods, for Kueue. Call with the root. */}}
{{- define "five.gangLabels" -}}
{{- with .Values.optimizer.gang }}
{{- if and .queue (not .podGroup) }}
kueue.x-k8s.io/queue-name: {{ .queue }}
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
{{- end }}

{{/* Template of the pods. Call with the component. */}}
{{- define "five.optimizerPod" -}}
{{- $optimizer := . }}
{{- $name := include "five.componentName" . }}
{{- $ranks := int (include "five.optimizerRanks" .root) }}
{{- $group := gt (int (include "five.optimizerCount" .root)) 1 }}
{{- $gang := .values.gang -}}
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
    kueue.x-k8s.io/queue-name: {{ $gang.queue }}
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
      # torchrun's agent starts the ranks of this pod. When one of the group is lost, all agents start theirs again
      # from the last checkpoint.
      command:
        - tini
        - --
        - python
        - -m
        - torch.distributed.run
      args:
        - --nnodes={{ $.root.Values.optimizer.replicas }}
        - --nproc-per-node={{ $ranks }}
        - --max-restarts={{ $.root.Values.optimizer.maxRestarts }}
        # Pods from before and after an upgrade must never form one group.
        - --rdzv-id={{ $.root.Values.run.name | default $.root.Release.Name }}-{{ printf "%s %s" (include "five.image" $optimizer) (include "five.configPart" $optimizer) | sha256sum | trunc 8 }}
        - --rdzv-backend=c10d
        # In full, as the first pod finds it in its own /etc/hosts: it has to know itself before DNS knows it.
        - --rdzv-endpoint={{ $name }}-0.{{ $name }}.{{ $.root.Release.Namespace }}.svc.{{ $.root.Values.global.clusterDomain }}:29400
        # Pods may wait long for each other: machines have to be found, images pulled.
        - --rdzv-conf=join_timeout=3600,read_timeout=180
        - --local-addr=$(POD_IP)
        - -m
        - five.services.optimizer
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
        # A group that is started again needs a store of its own: the agent's holds the addresses of lost ranks.
        - name: TORCH_DISABLE_SHARE_RDZV_TCP_STORE
          value: "1"
        # Ranks know how long they need to end, and the pod's grace period bounds it.
        - name: TORCH_ELASTIC_SHUTDOWN_TIMEOUT
          value: "3600"
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
        - name: rendezvous
          containerPort: 29400
        {{- end }}
      {{- if $group }}
      # Liveness checks each running rank's own progress; a rank that waits for the group or is restarted by the agent
      # does not count. There is no readiness or startup probe: both would depend on the peers, and would block an upgrade
      # or kill a pod for a fault of another one.
      livenessProbe:
        exec:
          command: [python, -m, rapid.telemetry.probe, "9100", {{ $ranks | quote }}]
        {{- toYaml (merge dict (dig "liveness" dict .values.probes) $.root.Values.global.probes.liveness) | nindent 8 }}
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
