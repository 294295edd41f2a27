{{/*
Pieces of a pod. All take a component: (dict "root" $ "component" "rollout" "values" .Values.rollout); see _names.tpl.
*/}}

{{/* Settings of every pod of the platform, without containers and volumes. */}}
{{- define "five.podSettings" -}}
serviceAccountName: {{ include "five.serviceAccountName" . }}
automountServiceAccountToken: {{ and (eq .component "controller") (eq .root.Values.autoscaling.mode "controller") }}
enableServiceLinks: false
{{- with .root.Values.global.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "five.priorityClassName" . }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
terminationGracePeriodSeconds: {{ include "five.graceSeconds" . }}
securityContext:
  {{- include "five.podSecurityContext" . | nindent 2 }}
{{- with include "five.schedulingConstraints" . }}
{{ . }}
{{- end }}
{{- end }}

{{/*
Grace period of a pod in seconds. An optimizer finishes its writes and writes a last checkpoint
(services.optimizer.drain_time has the same sum); five seconds are spare. Redis serves until its clients have drained.
*/}}
{{- define "five.graceSeconds" -}}
{{- $own := int .values.terminationGracePeriodSeconds }}
{{- if eq .component "optimizer" }}
{{- $facts := include "five.facts" .root | fromYaml }}
{{- $grace := dig "lifecycle" "grace_seconds" 20 .root.Values.run.overrides | float64 }}
{{- $writing := divf (mulf 2.5 $facts.checkpoint_bytes) (mulf 1000000.0 .root.Values.blobs.megabytesPerSecond) }}
{{- $own = max $own (int (ceil (addf 5.0 $grace $writing))) }}
{{- else if hasPrefix "redis-" .component }}
{{- $own = add $own (include "five.clientGraceSeconds" .root) }}
{{- end }}
{{- $own }}
{{- end }}

{{/*
Annotations of a pod. Cluster Autoscaler keeps a node while a pod has an emptyDir on its disk; rollouts and games, whose /tmp
holds nothing, let it remove the node.
*/}}
{{- define "five.podAnnotations" -}}
{{- $movable := has .component (list "rollout" "dota-env") }}
{{- $own := ternary (dict "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes" "tmp") dict $movable }}
{{- with merge dict .values.podAnnotations .root.Values.global.podAnnotations $own }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* Checksum that replaces a pod when its part of the run's configuration changes, and only then. */}}
{{- define "five.configChecksum" -}}
checksum/run-config: {{ include "five.configPart" . | sha256sum }}
{{- end }}

{{/* The user of the images, and of Redis too in place of its image's 999: low numbers are users of the nodes. */}}
{{- define "five.podSecurityContext" -}}
{{- $context := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- if not .root.Values.global.clusterAssignsUserIds }}
{{- $context = merge $context (dict "runAsUser" 10001 "runAsGroup" 10001 "fsGroup" 10001 "fsGroupChangePolicy" "OnRootMismatch") }}
{{- end }}
{{- toYaml (mustMergeOverwrite $context (deepCopy (dig "podSecurityContext" dict (.values | default dict)))) }}
{{- end }}

{{- define "five.containerSecurityContext" -}}
{{- $context := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) }}
{{- toYaml (mustMergeOverwrite $context (deepCopy (dig "containerSecurityContext" dict (.values | default dict)))) }}
{{- end }}

{{/* Volumes that the values add to a pod: a rollout's has those of the games beside it too. Call with a component. */}}
{{- define "five.extraVolumes" -}}
{{- $games := and (eq .component "rollout") (eq .root.Values.dotaEnv.placement "sidecar") }}
{{- /* Once each: both may name the same one, such as a private authority's certificates. */}}
{{- with concat .values.extraVolumes (ternary .root.Values.dotaEnv.extraVolumes list $games) | uniq }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- define "five.extraVolumeMounts" -}}
{{- with .values.extraVolumeMounts }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- define "five.priorityClassName" -}}
{{- .values.priorityClassName | default .root.Values.global.priorityClassName }}
{{- end }}

{{/* Node labels that a component's pods need. Redis has images of every architecture. Call with a component. */}}
{{- define "five.nodeSelector" -}}
{{- $global := .root.Values.global }}
{{- $selector := merge dict (dig "nodeSelector" dict (.values | default dict)) $global.nodeSelector }}
{{- if and $global.image.architecture (not (hasPrefix "redis-" .component)) }}
{{- $selector = merge $selector (dict "kubernetes.io/arch" $global.image.architecture) }}
{{- end }}
{{- toYaml $selector }}
{{- end }}

{{/* Scheduling settings: the component's own are added to the global ones, or replace them, as the values say. */}}
{{- define "five.schedulingConstraints" -}}
{{- $global := .root.Values.global }}
{{- $constraints := dict }}
{{- with include "five.nodeSelector" . | fromYaml }}
{{- $_ := set $constraints "nodeSelector" . }}
{{- end }}
{{- with concat $global.tolerations .values.tolerations }}
{{- $_ := set $constraints "tolerations" . }}
{{- end }}
{{- with include "five.affinity" . | fromYaml }}
{{- $_ := set $constraints "affinity" . }}
{{- end }}
{{- $selector := include "five.selectorLabels" . | fromYaml }}
{{- $spread := list }}
{{- /* One pod alone cannot be spread. */}}
{{- $several := has .component (list "rollout" "dota-env" "inference" "optimizer" "opponents") }}
{{- range ternary (.values.topologySpreadConstraints | default $global.topologySpreadConstraints) list $several }}
{{- $spread = append $spread (merge dict . (dict "labelSelector" (dict "matchLabels" $selector))) }}
{{- end }}
{{- with $spread }}
{{- $_ := set $constraints "topologySpreadConstraints" . }}
{{- end }}
{{- with $constraints }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* Requests and limits; Kubernetes requires GPUs in the limits. */}}
{{- define "five.resources" -}}
{{- $resources := deepCopy .values.resources }}
{{- with .values.gpu }}
{{- if gt (int .count) 0 }}
{{- $_ := set $resources "limits" (merge dict $resources.limits (dict .resourceName .count)) }}
{{- end }}
{{- end }}
{{- toYaml $resources }}
{{- end }}

{{/*
"true" where an autoscaler sets the number of the component's pods; the chart then never does. The controller's own
scales one inference pool, the one that serves the latest version.
*/}}
{{- define "five.autoscaled" -}}
{{- $mode := .root.Values.autoscaling.mode }}
{{- if eq .component "rollout" }}
{{- if ne $mode "none" }}true{{ end }}
{{- else if eq .component "inference" }}
{{- if or (has $mode (list "hpa" "keda")) (and (eq $mode "controller") (eq .values.serves "latest")) }}true{{ end }}
{{- end }}
{{- end }}

{{/*
Volume with a user's passwords, which a process reads for each connection; empty for a component without a user. Call with
(dict "root" $ "user" NAME), and "roles" to mount the passwords of some servers only.
*/}}
{{- define "five.redisLogin.volume" -}}
{{- with .roles | default (include "five.redisRoles" (dict "root" .root "component" .user) | fromJsonArray) }}
- name: redis-login
  secret:
    secretName: {{ include "five.secretName" (dict "root" $.root "at" "redis" "user" $.user) }}
    defaultMode: 0440
    items:
      {{- range . }}
      - key: {{ . }}-password
        path: {{ . }}-password
      {{- end }}
{{- end }}
{{- end }}

{{/* Mount of that volume. Call with (dict "root" $ "user" NAME). */}}
{{- define "five.redisLogin.mount" -}}
{{- if include "five.redisRoles" (dict "root" .root "component" .user) | fromJsonArray }}
- name: redis-login
  mountPath: /etc/five/redis
  readOnly: true
{{- end }}
{{- end }}

{{/*
Probes of a service. Startup and liveness ask the process itself and never depend on a peer; readiness may, and is
gRPC's own health service, which the kubelet can ask as long as it needs no certificate.
Optional: "grpcPort" 0 for a service without gRPC, "pages" the port of /healthz and /readyz where it is not `metrics`.
*/}}
{{- define "five.probes" -}}
{{- $timing := merge dict (deepCopy .values.probes) .root.Values.global.probes }}
{{- $grpc := ternary .grpcPort 50051 (hasKey . "grpcPort") }}
{{- $alive := dict "httpGet" (dict "path" "/healthz" "port" (.pages | default "metrics")) }}
{{- $ready := dict "httpGet" (dict "path" "/readyz" "port" (.pages | default "metrics")) }}
{{- if and $grpc (not .root.Values.tls.grpc.enabled) }}
{{- $ready = dict "grpc" (dict "port" $grpc) }}
{{- end -}}
startupProbe:
  {{- toYaml (merge dict $alive $timing.startup) | nindent 2 }}
livenessProbe:
  {{- toYaml (merge dict $alive $timing.liveness) | nindent 2 }}
readinessProbe:
  {{- toYaml (merge dict $ready $timing.readiness) | nindent 2 }}
{{- end }}

{{/* "true" for a component that reads or writes blobs, wherever they are. Inference reads alone. */}}
{{- define "five.usesBlobs" -}}
{{- if has .component (list "inference" "optimizer" "evaluator" "backup") }}true{{ end }}
{{- end }}

{{/* "true" for a component that mounts the shared volume of blobs. */}}
{{- define "five.mountsBlobs" -}}
{{- if and (not .root.Values.blobs.url) (include "five.usesBlobs" .) }}true{{ end }}
{{- end }}

{{/* "true" for a component that mounts a ReadWriteOnce volume of blobs: all such pods must run on one node. */}}
{{- define "five.boundToBlobs" -}}
{{- if and (include "five.mountsBlobs" .) (not (has "ReadWriteMany" .root.Values.blobs.accessModes)) }}true{{ end }}
{{- end }}

{{/* Label of the pods that must run on one node. */}}
{{- define "five.blobsLabel" -}}
{{- if include "five.boundToBlobs" . -}}
five/shares-blobs: {{ include "five.fullname" .root }}
{{- end }}
{{- end }}

{{/* Affinity of a pod: the values', and with a ReadWriteOnce volume to the other pods that mount it. */}}
{{- define "five.affinity" -}}
{{- $affinity := deepCopy (.values.affinity | default .root.Values.global.affinity) }}
{{- if include "five.boundToBlobs" . }}
{{- $near := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" (include "five.blobsLabel" . | fromYaml)) }}
{{- $pods := $affinity.podAffinity | default dict }}
{{- $required := $pods.requiredDuringSchedulingIgnoredDuringExecution | default list }}
{{- $_ := set $pods "requiredDuringSchedulingIgnoredDuringExecution" (append $required $near) }}
{{- $_ := set $affinity "podAffinity" $pods }}
{{- end }}
{{- with $affinity }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* "true" for a component that calls services. */}}
{{- define "five.calls" -}}
{{- if has .component (include "five.callers" .root | fromJsonArray) }}true{{ end }}
{{- end }}

{{/* "true" for a component that others call by gRPC. */}}
{{- define "five.serves" -}}
{{- if has .component (list "dota-env" "evaluator" "inference" "opponents" "optimizer" "play") }}true{{ end }}
{{- end }}

{{- define "five.volumes" -}}
- name: run
  configMap:
    name: {{ include "five.fullname" .root }}-run
- name: tmp
  emptyDir:
    sizeLimit: {{ .root.Values.global.tmpSize }}
{{- if include "five.mountsBlobs" . }}
- name: blobs
  persistentVolumeClaim:
    claimName: {{ include "five.blobsClaimName" .root }}
{{- end }}
{{- if include "five.calls" . }}
# The component's secret for calls of other services. A changed file is read within two minutes.
- name: caller
  secret:
    secretName: {{ include "five.secretName" (dict "root" .root "at" "callers" "user" .component) }}
    defaultMode: 0440
    items:
      - key: secret
        path: secret
{{- end }}
{{- if or (include "five.serves" .) (and (eq .component "rollout") (eq .root.Values.dotaEnv.placement "sidecar")) }}
# Hashes by which servers know their callers.
- name: callers
  secret:
    secretName: {{ include "five.secretName" (dict "root" .root "at" "callers" "user" "hashes") }}
    defaultMode: 0440
    items:
      - key: callers.json
        path: callers.json
{{- end }}
{{- with include "five.redisLogin.volume" (dict "root" .root "user" .component) | trim }}
{{ . }}
{{- end }}
{{- if eq .component "controller" }}
# In a folder of its own: a token that is added to the Secret is taken within a minute or two.
- name: tokens
  secret:
    secretName: {{ include "five.secretName" (dict "root" .root "at" "tokens") }}
    defaultMode: 0440
    items:
      - key: tokens.json
        path: tokens.json
{{- end }}
{{- with include "five.tls.volumes" (dict "root" .root "of" (include "five.connections" . | fromJsonArray)) | trim }}
{{ . }}
{{- end }}
{{- with include "five.extraVolumes" . }}
{{ . }}
{{- end }}
{{- end }}

{{/* Kinds of a component's connections that may use TLS, "grpc" and "redis", as a JSON array. */}}
{{- define "five.connections" -}}
{{- if eq .component "dotaservice" -}}
{{- list | toJson -}}
{{- else -}}
{{- ternary (list "grpc") (list "grpc" "redis") (eq .component "dota-env") | toJson -}}
{{- end -}}
{{- end }}

{{- define "five.volumeMounts" -}}
- name: run
  mountPath: /etc/five/run.yaml
  subPath: run.yaml
  readOnly: true
{{- if eq .component "controller" }}
# As a folder too, in which a file changes with the ConfigMap: the autoscaler reads its settings again.
- name: run
  mountPath: /etc/five/live
  readOnly: true
{{- end }}
- name: tmp
  mountPath: /tmp
{{- if include "five.calls" . }}
- name: caller
  mountPath: /etc/five/caller
  readOnly: true
{{- end }}
{{- if include "five.serves" . }}
- name: callers
  mountPath: /etc/five/callers
  readOnly: true
{{- end }}
{{- if include "five.mountsBlobs" . }}
- name: blobs
  mountPath: /var/lib/five/blobs
  {{- if eq .component "inference" }}
  readOnly: true
  {{- end }}
{{- end }}
{{- with include "five.redisLogin.mount" (dict "root" .root "user" .component) | trim }}
{{ . }}
{{- end }}
{{- if eq .component "controller" }}
- name: tokens
  mountPath: /etc/five/tokens
  readOnly: true
{{- end }}
{{- with include "five.tls.mounts" (dict "root" .root "of" (include "five.connections" . | fromJsonArray)) | trim }}
{{ . }}
{{- end }}
{{- with include "five.extraVolumeMounts" . }}
{{ . }}
{{- end }}
{{- end }}

{{- define "five.blobsClaimName" -}}
{{- .Values.blobs.existingClaim | default (printf "%s-blobs" (include "five.fullname" .)) }}
{{- end }}
