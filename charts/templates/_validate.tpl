{{/*
Checks that values.schema.json cannot express: combinations of valid values that do not work. All problems are reported at once.
*/}}

{{/* Keys of run.overrides that the chart computes, one to a line. Call with (dict "path" P "overrides" O "computed" C). */}}
{{- define "five.contradictions" -}}
{{- $at := . }}
{{- range $key, $value := .overrides }}
{{- if hasKey $at.computed $key }}
{{- $computed := get $at.computed $key }}
{{- $path := printf "%s.%s" $at.path $key }}
{{- if and (kindIs "map" $value) (kindIs "map" $computed) }}
{{- include "five.contradictions" (dict "path" $path "overrides" $value "computed" $computed) }}
{{- else }}
{{ $path }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Keys of run.overrides that an earlier version had, each with what replaces it, one to a line. Call with the root. */}}
{{- define "five.replaced.problems" -}}
{{- range $path, $message := .Files.Get "files/replaced-keys.yaml" | fromYaml }}
{{- $keys := splitList "." $path }}
{{- $at := $.Values.run.overrides }}
{{- range initial $keys }}
{{- $at = ternary (get $at .) dict (kindIs "map" $at) | default dict }}
{{- end }}
{{- if hasKey $at (last $keys) }}
run.overrides: {{ $message }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Refuses values that lack keys of this chart: `helm upgrade --reuse-values` passes the previous chart's defaults. Called
first, because templates fail on a missing section without naming the cause.
*/}}
{{- define "five.values.complete" -}}
{{- $missing := list }}
{{- range $path := .Files.Lines "files/value-keys.txt" | compact }}
{{- $at := dict "value" $.Values "there" true }}
{{- range $key := splitList "." $path }}
{{- $here := and $at.there (kindIs "map" $at.value) }}
{{- if $here }}{{ $here = hasKey $at.value $key }}{{ end }}
{{- $_ := set $at "there" $here }}
{{- if $here }}{{ $_ := set $at "value" (get $at.value $key) }}{{ end }}
{{- end }}
{{- if not $at.there }}
{{- $missing = append $missing $path }}
{{- end }}
{{- end }}
{{- with $missing }}
{{- $more := sub (len .) 5 }}
{{- $named := printf "%s%s" (slice . 0 (min 5 (len .)) | join ", ") (ternary (printf " and %d more" $more) "" (gt $more 0)) }}
{{- fail (printf "\n\nThese values lack keys of chart %s: %s.\n`helm upgrade --reuse-values` passes the previous chart's defaults. Use --reset-then-reuse-values (Helm 3.14 or newer) instead, or pass your own values with -f (docs/operations.md, Upgrade).\nA key set to null also counts as missing: set it to \"\", [] or {}.\n" $.Chart.Version $named) }}
{{- end }}
{{- end }}

{{/* Refuses the values. Called once, by the template that helm renders first. */}}
{{- define "five.validate" -}}
{{- $facts := include "five.facts" . | fromYaml }}
{{- $problems := list }}
{{- range list "five.names.problems" "five.tls.problems" "five.autoscaling.problems" "five.redis.problems" "five.existing.problems" "five.secrets.problems" "five.env.problems" "five.gang.problems" "five.replaced.problems" }}
{{- $problems = concat $problems (include . $ | trim | splitList "\n" | compact) }}
{{- end }}

{{- $computed := mustMergeOverwrite (include "five.computedConfig" . | fromYaml) (include "five.tls.config" . | fromYaml) }}
{{- range include "five.contradictions" (dict "path" "run.overrides" "overrides" .Values.run.overrides "computed" $computed) | trim | splitList "\n" | compact }}
{{- $problems = append $problems (printf "%s: the chart computes it from its own values; leave it out" .) }}
{{- end }}

{{- $count := int (include "five.optimizerCount" .) }}
{{- $most := int (dig "services" "optimizer" "max_optimizers" $facts.max_optimizers .Values.run.overrides) }}
{{- if gt $count $most }}
{{- $problems = append $problems (printf "optimizer: %d replicas x %s each are %d optimizers, and preset %s is made for %d at most: take another preset, or set schedules and batch sizes for them in run.overrides and raise services.optimizer.max_optimizers there" (int .Values.optimizer.replicas) (include "five.optimizerRanks" .) $count .Values.run.preset $most) }}
{{- end }}

{{- $latest := include "five.inferenceNames" (dict "root" . "serves" "latest") | trim | splitList "\n" | compact }}
{{- if ne (len $latest) 1 }}
{{- $problems = append $problems (printf "inference.pools: %d pools serve the latest version; it has to be one" (len $latest)) }}
{{- end }}
{{- $past := include "five.inferenceNames" (dict "root" . "serves" "past") | trim | splitList "\n" | compact }}
{{- if gt (len $past) 1 }}
{{- $problems = append $problems (printf "inference.pools: %d pools serve past versions; make it one with more replicas" (len $past)) }}
{{- end }}

{{- $grace := dig "lifecycle" "grace_seconds" 20 .Values.run.overrides }}
{{- $own := pick .Values "rollout" "dotaEnv" "inference" "optimizer" "controller" "opponents" "evaluator" "play" "dotaservice" }}
{{- range $name, $pool := .Values.inference.pools }}
{{- $_ := set $own (printf "inference.pools.%s" $name) ($pool | default dict) }}
{{- end }}
{{- range $path, $values := $own }}
{{- $seconds := $values.terminationGracePeriodSeconds }}
{{- if and (hasKey $values "terminationGracePeriodSeconds") (le (float64 $seconds) (float64 $grace)) }}
{{- $problems = append $problems (printf "%s.terminationGracePeriodSeconds: %v s are not longer than the %v s in which a service drains (lifecycle.grace_seconds)" $path $seconds $grace) }}
{{- end }}
{{- end }}

{{- $rollouts := int .Values.rollout.replicas }}
{{- if ne .Values.autoscaling.mode "none" }}
{{- $rollouts = int .Values.autoscaling.rollout.maxReplicas }}
{{- end }}
{{- $servers := int (include "five.inferenceServers" .) }}
{{- /* As capacity.connections counts them: one a rollout, three an inference server, ten an optimizer, the rest. */}}
{{- $connections := add $rollouts (mul 3 $servers) (mul 10 $count) 100 }}
{{- if gt (int $connections) (int .Values.redis.state.maxclients) }}
{{- $problems = append $problems (printf "redis.state.maxclients: %d rollouts, %d inference servers and %d optimizers hold %d connections to the state's Redis, which takes %d: fewer of them, or raise it (the node's limit of open files too)" $rollouts $servers $count (int $connections) (int .Values.redis.state.maxclients)) }}
{{- end }}

{{- if and (eq .Values.dotaEnv.placement "deployment") (not (int .Values.dotaEnv.replicas)) .Values.rollout.replicas }}
{{- $problems = append $problems "dotaEnv.replicas: rollouts without games; give dotaEnv a replica, or rollout none" }}
{{- end }}

{{- if and (not .Values.redis.params.maxmemory) (not .Values.redis.params.external.host) (omit (dig "model" dict .Values.run.overrides) "precision") }}
{{- $problems = append $problems "redis.params.maxmemory: run.overrides.model changes the model's size, which the chart knows of the presets only; set it to bytes of a version x (store.keep_versions + versions made in store.grace_seconds + 1)" }}
{{- end }}

{{- if and (not .Values.blobs.url) .Values.blobs.existingClaim .Values.blobs.storageClass }}
{{- $problems = append $problems "blobs.storageClass: blobs.existingClaim is there already and keeps its class; leave one of them out" }}
{{- end }}

{{- if and .Values.controller.ingress.enabled .Values.networkPolicy.enabled (not .Values.networkPolicy.controllerFrom) }}
{{- $problems = append $problems "controller.ingress.enabled: no policy lets the ingress controller in. Name its pods in networkPolicy.controllerFrom, for example [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress-nginx}}}]" }}
{{- end }}

{{- $type := .Values.controller.service.type }}
{{- if and (ne $type "ClusterIP") .Values.networkPolicy.enabled (not .Values.networkPolicy.controllerFrom) }}
{{- $problems = append $problems (printf "controller.service.type %s: no policy lets its clients in. Name the addresses from which pods see them in networkPolicy.controllerFrom, for example [{ipBlock: {cidr: 10.0.0.0/8}}]" $type) }}
{{- end }}

{{- if and .Values.dotaservice.enabled .Values.networkPolicy.enabled (not .Values.dotaservice.allowFrom) }}
{{- $problems = append $problems "dotaservice.enabled: no policy lets its clients in. Name their pods in dotaservice.allowFrom, for example [{podSelector: {matchLabels: {app: trainer}}}]" }}
{{- end }}

{{- with $problems }}
{{- fail (printf "\n\nThese values cannot be installed:\n  - %s\n" (join "\n  - " .)) }}
{{- end }}
{{- end }}
