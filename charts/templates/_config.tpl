{{/*
The run's configuration: a preset, what the values override in it, and the addresses that only the chart knows.
*/}}

{{/* Sizes of the preset (files/presets.yaml, generated from the presets), as YAML. */}}
{{- define "five.facts" -}}
{{- $presets := .Files.Get "files/presets.yaml" | fromYaml }}
{{- if not (hasKey $presets .Values.run.preset) }}
{{- fail (printf "run.preset: there is no preset %q; presets: %s" .Values.run.preset (keys $presets | sortAlpha | join ", ")) }}
{{- end }}
{{- toYaml (get $presets .Values.run.preset) }}
{{- end }}

{{/* Optimizers in a pod: one for each GPU, or one without GPUs. */}}
{{- define "five.optimizerRanks" -}}
{{- max 1 (int .Values.optimizer.gpu.count) }}
{{- end }}

{{- define "five.optimizerCount" -}}
{{- mul (int .Values.optimizer.replicas) (int (include "five.optimizerRanks" .)) }}
{{- end }}

{{/* The inference pools: name -> values, each the section's own with the pool's over it. As YAML. */}}
{{- define "five.inferencePools" -}}
{{- $shared := omit .Values.inference "pools" }}
{{- $pools := dict }}
{{- range $name, $own := .Values.inference.pools }}
{{- $_ := set $pools $name (mergeOverwrite (deepCopy $shared) (deepCopy ($own | default dict))) }}
{{- end }}
{{- toYaml $pools }}
{{- end }}

{{/* Names of the pools that serve "latest" or "past", one to a line. Call with (dict "root" $ "serves" "latest"). */}}
{{- define "five.inferenceNames" -}}
{{- $at := . }}
{{- range $name, $pool := include "five.inferencePools" .root | fromYaml }}
{{- if eq $pool.serves $at.serves }}
{{ include "five.componentName" (dict "root" $at.root "component" "inference" "pool" $name) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Addresses of the game servers: containers of the rollout's pod, or the headless Service. */}}
{{- define "five.dotaEnvAddresses" -}}
{{- if eq .Values.dotaEnv.placement "sidecar" }}
{{- range $i := until (int .Values.dotaEnv.perRollout) }}
- 127.0.0.1:{{ add 50051 $i }}
{{- end }}
{{- else }}
- {{ include "five.componentName" (dict "root" . "component" "dota-env") }}:50051
{{- end }}
{{- end }}

{{/* A host in a URL: an IPv6 address needs brackets. */}}
{{- define "five.bracketed" -}}
{{- if and (contains ":" .) (not (hasPrefix "[" .)) }}[{{ . }}]{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* URL of a Redis, without its password. Call with (dict "root" $ "role" "state"). */}}
{{- define "five.redisUrl" -}}
{{- $external := (index .root.Values.redis .role).external }}
{{- $host := include "five.componentName" (dict "root" .root "component" (printf "redis-%s" .role)) }}
{{- $scheme := ternary "rediss" "redis" .root.Values.tls.redis.enabled }}
{{- if and $external.host $external.sentinel.primary }}
{{- $sentinels := list }}
{{- range $address := splitList "," $external.host }}
{{- $sentinels = append $sentinels (printf "%s:%d" (include "five.bracketed" (trim $address)) (int $external.port)) }}
{{- end }}
{{- printf "%s+sentinel://%s/%s/%d" $scheme (join "," $sentinels) $external.sentinel.primary (int $external.database) }}
{{- else if $external.host }}
{{- printf "%s://%s:%d/%d" $scheme (include "five.bracketed" $external.host) (int $external.port) (int $external.database) }}
{{- else }}
{{- printf "%s://%s:6379/0" $scheme $host }}
{{- end }}
{{- end }}

{{/*
Archived versions that fit into half of the release's own claim; checkpoints, replays, pinned and the newest versions have the
other half. Nothing where run.overrides changes the model's size.
*/}}
{{- define "five.maxArchived" -}}
{{- $facts := include "five.facts" . | fromYaml }}
{{- $dtype := dig "store" "publish_dtype" $facts.publish_dtype .Values.run.overrides }}
{{- $version := ternary (divf $facts.parameter_bytes 2) $facts.parameter_bytes (eq $dtype "bfloat16") }}
{{- $half := divf (include "five.bytes" .Values.blobs.size | float64) 2 }}
{{- if not (omit (dig "model" dict .Values.run.overrides) "precision") }}
{{- min 10000 (max 2 (divf $half $version | int64)) }}
{{- end }}
{{- end }}

{{/* Keys of the run's configuration that the chart computes. run.overrides may not contain them (_validate.tpl). */}}
{{- define "five.computedConfig" -}}
{{- $optimizer := include "five.componentName" (dict "root" . "component" "optimizer") -}}
preset: {{ .Values.run.preset | quote }}
name: {{ include "five.runName" . | quote }}
rpc:
  listen_host: "::"
store:
  state_url: {{ include "five.redisUrl" (dict "root" . "role" "state") }}
  params_url: {{ include "five.redisUrl" (dict "root" . "role" "params") }}
  {{- if not (or .Values.redis.state.external.host (hasKey (dig "store" dict .Values.run.overrides) "series_records")) }}
  series_records: {{ include "five.seriesRecords" . }}
  {{- end }}
  {{- if not (or .Values.blobs.url .Values.blobs.existingClaim (hasKey (dig "store" dict .Values.run.overrides) "max_archived")) }}
  {{- with include "five.maxArchived" . | trim }}
  max_archived: {{ . }}
  {{- end }}
  {{- end }}
blobs:
  url: {{ .Values.blobs.url | default "/var/lib/five/blobs" }}
telemetry:
  metrics_host: "::"
tracing:
  endpoint: {{ .Values.tracing.endpoint | default "null" }}
services:
  dota_env:
    addresses:
      {{- include "five.dotaEnvAddresses" . | trim | nindent 6 }}
  rollout:
    environment: remote
    {{- if gt (int .Values.dotaEnv.perRollout) 1 }}
    # Two groups of games for each game container: one is stepped while the other waits for inference.
    groups: {{ min 8 (mul 2 (int .Values.dotaEnv.perRollout)) }}
    {{- end }}
  inference:
    addresses: [{{ include "five.inferenceNames" (dict "root" . "serves" "latest") | trim }}:50051]
    {{- with include "five.inferenceNames" (dict "root" . "serves" "past") | trim }}
    past_addresses: [{{ . }}:50051]
    {{- end }}
    device: {{ ternary "cuda" "cpu" (gt (int .Values.inference.gpu.count) 0) }}
  optimizer:
    optimizers: {{ include "five.optimizerCount" . }}
    ranks_per_node: {{ include "five.optimizerRanks" . }}
    {{- /* Over TLS by a longer name: a certificate's wildcard holds below a name of two labels or more only. */}}
    {{- $below := printf "%s%s" $optimizer (ternary (printf ".%s.svc" .Release.Namespace) "" .Values.tls.grpc.enabled) }}
    {{- if eq .Values.optimizer.gang.form "StatefulSet" }}
    addresses: ["{{ $optimizer }}-{node}.{{ $below }}:50051"]
    {{- else }}
    addresses:
      {{- range $host := include "five.optimizerHosts" . | fromJsonArray }}
      {{- range $rank := until (int (include "five.optimizerRanks" $)) }}
      - {{ $host }}.{{ $below }}:{{ add 50051 $rank }}
      {{- end }}
      {{- end }}
    {{- end }}
    device: {{ ternary "cuda" "cpu" (gt (int .Values.optimizer.gpu.count) 0) }}
  opponents:
    address: {{ include "five.componentName" (dict "root" . "component" "opponents") }}:50051
  evaluator:
    enabled: {{ .Values.evaluator.enabled }}
    {{- if .Values.evaluator.enabled }}
    address: {{ include "five.componentName" (dict "root" . "component" "evaluator") }}:50051
    {{- if include "five.mountsBlobs" (dict "root" . "component" "evaluator") }}
    replays: /var/lib/five/blobs/replays/{{ include "five.runName" . }}
    {{- end }}
    {{- end }}
  play:
    enabled: {{ .Values.play.enabled }}
    {{- if .Values.play.enabled }}
    address: {{ include "five.componentName" (dict "root" . "component" "play") }}:50051
    {{- end }}
  dotaservice:
    host: "::"
    port: 13337
    games: {{ .Values.dotaservice.games }}
  controller:
    host: "::"
    port: 8080
    keep_serving: true
    {{- $path := .Values.controller.ingress.path | trimSuffix "/" }}
    {{- if and .Values.controller.ingress.enabled $path }}
    path_prefix: {{ $path }}
    {{- end }}
    {{- with .Values.autoscaling }}
    {{- if eq .mode "controller" }}
    autoscaler:
      enabled: true
      rollout:
        deployment: {{ include "five.componentName" (dict "root" $ "component" "rollout") }}
        min: {{ .rollout.minReplicas }}
        max: {{ .rollout.maxReplicas }}
      inference:
        deployment: {{ include "five.inferenceNames" (dict "root" $ "serves" "latest") | trim }}
        min: {{ .inference.minReplicas }}
        max: {{ .inference.maxReplicas }}
    {{- end }}
    {{- end }}
{{- end }}

{{/* The file that every service reads, as YAML. */}}
{{- define "five.runConfig" -}}
{{- $computed := include "five.computedConfig" . | fromYaml }}
{{- $computed = mustMergeOverwrite $computed (include "five.tls.config" . | fromYaml) }}
{{- /* helm reads a fraction after --set as text; the services take numbers only. */}}
{{- $config := toYaml (mustMergeOverwrite (deepCopy .Values.run.overrides) $computed) }}
{{- $config = regexReplaceAll "(?m)(: |- )\"(-?[0-9]+(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\"$" $config "${1}${2}" }}
{{- /* Keys that take text. */}}
{{- regexReplaceAll "(?m)^((?: *(?:patch|recover_checkpoint)|name|preset): )([-+0-9.eE]+)$" $config "${1}\"${2}\"" }}
{{- end }}

{{/*
Part of the run's configuration that a component reads at start (files/reads.yaml, generated from the services' source), as
YAML by key path. A rollout's part includes that of the games in its pod. Call with a component.
*/}}
{{- define "five.configPart" -}}
{{- $config := include "five.runConfig" .root | fromYaml }}
{{- $reads := .root.Files.Get "files/reads.yaml" | fromYaml }}
{{- $paths := concat (list "preset") (get $reads .component) }}
{{- if and (eq .component "rollout") (eq .root.Values.dotaEnv.placement "sidecar") }}
{{- $paths = concat $paths (get $reads "dota-env") | uniq }}
{{- end }}
{{- $part := dict }}
{{- range $path := $paths }}
{{- $at := dict "value" $config "there" true }}
{{- range $key := splitList "." $path }}
{{- $here := and $at.there (kindIs "map" $at.value) }}
{{- if $here }}{{ $here = hasKey $at.value $key }}{{ end }}
{{- $_ := set $at "there" $here }}
{{- if $here }}{{ $_ := set $at "value" (get $at.value $key) }}{{ end }}
{{- end }}
{{- /* These depend on sizes of memory and disk, which may grow without a restart; the next restart reads them. */}}
{{- if eq $path "store" }}
{{- range $key := list "series_records" "max_archived" }}
{{- if not (hasKey (dig "store" dict $.root.Values.run.overrides) $key) }}{{ $_ := set $at "value" (omit $at.value $key) }}{{ end }}
{{- end }}
{{- end }}
{{- if $at.there }}{{ $_ := set $part $path $at.value }}{{ end }}
{{- end }}
{{- toYaml $part }}
{{- end }}

{{/* The run's name. */}}
{{- define "five.runName" -}}
{{- .Values.run.name | default .Release.Name -}}
{{- end }}
