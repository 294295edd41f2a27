{{/*
Network policies. five.network.graph declares who calls whom; the policies of both ends derive from it.
*/}}

{{/* Component -> components that it calls, as YAML. Call with the root. */}}
{{- define "five.network.graph" -}}
{{- $games := ternary (list "dota-env") (list) (eq .Values.dotaEnv.placement "deployment") -}}
{{- $evaluator := ternary (list "evaluator") (list) .Values.evaluator.enabled -}}
{{- $play := ternary (list "play") (list) .Values.play.enabled -}}
{{- $graph := dict "rollout" (concat (list "inference" "optimizer" "opponents") $games) "inference" list "optimizer" (list "optimizer") "opponents" list "controller" (concat $evaluator $play) -}}
{{- if .Values.evaluator.enabled -}}
{{- $_ := set $graph "evaluator" (list "inference") -}}
{{- end -}}
{{- if .Values.play.enabled -}}
{{- $_ := set $graph "play" (list "inference") -}}
{{- end -}}
{{- if $games -}}
{{- $_ := set $graph "dota-env" list -}}
{{- end -}}
{{- if .Values.dotaservice.enabled -}}
{{- $_ := set $graph "dotaservice" list -}}
{{- end -}}
{{- if .Values.backup.enabled -}}
{{- $_ := set $graph "backup" list -}}
{{- end -}}
{{- if .Values.tests.enabled -}}
{{- $_ := set $graph "test" (concat (list "controller" "inference" "optimizer" "opponents") $games $evaluator $play) -}}
{{- end -}}
{{- range $caller, $called := $graph }}
{{ $caller }}: {{ concat $called (include "five.network.stores" (dict "root" $ "component" $caller) | fromJsonArray) | toJson }}
{{- end }}
{{- end }}

{{/* Roles of the Redis servers that a component uses, as a JSON array. Call with (dict "root" $ "component" C). */}}
{{- define "five.network.redisRoles" -}}
{{- if eq .component "backup" -}}
{{- list "state" | toJson -}}
{{- else -}}
{{- include "five.redisRoles" (dict "root" .root "component" (ternary "probe" .component (eq .component "test"))) -}}
{{- end -}}
{{- end }}

{{/* The release's own Redis servers that a component uses, as a JSON array. Call with the same. */}}
{{- define "five.network.stores" -}}
{{- $found := list -}}
{{- range $role := include "five.network.redisRoles" . | fromJsonArray -}}
{{- if include "five.ownsRedis" (dict "root" $.root "role" $role) -}}
{{- $found = append $found (printf "redis-%s" $role) -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* Ports at which a component is called, as a YAML list. Call with (dict "root" $ "component" "x"). */}}
{{- define "five.network.ports" -}}
{{- if eq .component "controller" -}}
- 8080
{{- else if hasPrefix "redis-" .component -}}
- 6379
{{- else if eq .component "dotaservice" -}}
{{- range $game := until (int .root.Values.dotaservice.games) }}
- {{ add 13337 $game }}
{{- end }}
{{- else -}}
{{- range $rank := until (ternary (int (include "five.optimizerRanks" .root)) 1 (eq .component "optimizer")) }}
- {{ add 50051 $rank }}
{{- end }}
{{- end }}
{{- end }}

{{/* Metrics ports of a component's pod, as a YAML list: one for each optimizer, and for each game container of a rollout. */}}
{{- define "five.network.metricsPorts" -}}
{{- $count := 1 }}
{{- if eq .component "optimizer" }}
{{- $count = int (include "five.optimizerRanks" .root) }}
{{- else if and (eq .component "rollout") (eq .root.Values.dotaEnv.placement "sidecar") }}
{{- $count = add1 (int .root.Values.dotaEnv.perRollout) }}
{{- end }}
{{- range $i := until (int $count) }}
- {{ add 9100 $i }}
{{- end }}
{{- end }}

{{/* TCP ports of a rule, from a YAML list of numbers. */}}
{{- define "five.network.tcp" -}}
{{- range $port := fromYamlArray . }}
- port: {{ $port }}
  protocol: TCP
{{- end }}
{{- end }}

{{/* One peer that is a component of this release. Call with (dict "root" $ "component" "x"). */}}
{{- define "five.network.peer" -}}
- podSelector:
    matchLabels:
      {{- include "five.selectorLabels" . | nindent 6 }}
{{- end }}

{{/* The policy of one component. Call with (dict "root" $ "component" "x"). */}}
{{- define "five.network.policy" -}}
{{- $root := .root -}}
{{- $component := .component -}}
{{- $policy := $root.Values.networkPolicy -}}
{{- $graph := include "five.network.graph" $root | fromYaml -}}
{{- $callers := list -}}
{{- range $caller, $called := $graph -}}
{{- if and (has $component $called) (ne $caller $component) -}}
{{- $callers = append $callers $caller -}}
{{- end -}}
{{- end -}}
{{- $calls := get $graph $component | default list -}}
{{- $isRedis := hasPrefix "redis-" $component -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "five.componentName" . }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "five.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "five.selectorLabels" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- if has $component (list "test" "backup") }}
  ingress: []
  {{- else }}
  ingress:
    {{- if $callers }}
    - from:
        {{- range $caller := $callers }}
        {{- include "five.network.peer" (dict "root" $root "component" $caller) | nindent 8 }}
        {{- end }}
      ports:
        {{- include "five.network.ports" . | include "five.network.tcp" | trim | nindent 8 }}
    {{- end }}
    {{- if has $component $calls }}
    # The ranks of one group: the first one's store, and ports that gloo and NCCL pick for each pair.
    - from:
        {{- include "five.network.peer" . | nindent 8 }}
    {{- end }}
    {{- if and (eq $component "controller") $policy.controllerFrom }}
    - from:
        {{- toYaml $policy.controllerFrom | nindent 8 }}
      ports:
        {{- include "five.network.ports" . | include "five.network.tcp" | trim | nindent 8 }}
    {{- end }}
    {{- if and (eq $component "dotaservice") $root.Values.dotaservice.allowFrom }}
    - from:
        {{- toYaml $root.Values.dotaservice.allowFrom | nindent 8 }}
      ports:
        {{- include "five.network.ports" . | include "five.network.tcp" | trim | nindent 8 }}
    {{- end }}
    {{- if and $policy.metricsFrom (not $isRedis) }}
    - from:
        {{- toYaml $policy.metricsFrom | nindent 8 }}
      ports:
        {{- include "five.network.metricsPorts" . | include "five.network.tcp" | trim | nindent 8 }}
    {{- end }}
  {{- end }}
  {{- if $isRedis }}
  egress: []
  {{- else }}
  egress:
    {{- range $called := $calls }}
    - to:
        {{- include "five.network.peer" (dict "root" $root "component" $called) | nindent 8 }}
      {{- if ne $called $component }}
      ports:
        {{- include "five.network.ports" (dict "root" $root "component" $called) | include "five.network.tcp" | trim | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- range $role := include "five.network.redisRoles" . | fromJsonArray }}
    {{- $external := (index $root.Values.redis $role).external }}
    {{- if $external.host }}
    # The {{ $role }} Redis outside the release.
    - ports:
        - port: {{ int $external.port }}
          protocol: TCP
        {{- if $external.sentinel.primary }}
        - port: {{ int $external.sentinel.redisPort }}
          protocol: TCP
        {{- end }}
      {{- with $policy.redisTo }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- end }}
    {{- /* The controller mounts no volume, but reads old versions, recordings and staged files in an object store. */}}
    {{- if and $root.Values.blobs.url (or (include "five.usesBlobs" .) (eq $component "controller")) }}
    # The object store.
    - ports:
        {{- toYaml $policy.blobsPorts | include "five.network.tcp" | trim | nindent 8 }}
      {{- with $policy.blobsTo }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- range $endpoint := $policy.blobsCredentials }}
    # Credentials of the object store.
    - ports:
        {{- toYaml $endpoint.ports | include "five.network.tcp" | trim | nindent 8 }}
      to:
        - ipBlock:
            cidr: {{ $endpoint.cidr | quote }}
    {{- end }}
    {{- end }}
    {{- if and $root.Values.tracing.endpoint (not (has $component (list "test" "backup"))) }}
    # The collector of traces.
    - ports:
        {{- toYaml $policy.tracingPorts | include "five.network.tcp" | trim | nindent 8 }}
      {{- with $policy.tracingTo }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- if and (eq $component "controller") (eq $root.Values.autoscaling.mode "controller") }}
    # The Kubernetes API, for the autoscaler.
    - ports:
        {{- toYaml $policy.kubernetesApiPorts | include "five.network.tcp" | trim | nindent 8 }}
      {{- with $policy.kubernetesApiCidrs }}
      to:
        {{- range $cidr := . }}
        - ipBlock:
            cidr: {{ $cidr | quote }}
        {{- end }}
      {{- end }}
    {{- end }}
    {{- if $policy.dns }}
    - to:
        {{- toYaml $policy.dns | nindent 8 }}
      ports:
        {{- range $port := $policy.dnsPorts }}
        - port: {{ $port }}
          protocol: UDP
        - port: {{ $port }}
          protocol: TCP
        {{- end }}
    {{- end }}
    {{- with $policy.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end }}
