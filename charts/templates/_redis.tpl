{{/*
The two Redis servers.
*/}}

{{/* "true" where the release runs the Redis of a role itself. Call with (dict "root" $ "role" "state"). */}}
{{- define "five.ownsRedis" -}}
{{- if not (index .root.Values.redis .role).external.host }}true{{ end }}
{{- end }}

{{/*
Volumes of the users: the Secret's hashes, in a folder of its own where a file changes with the Secret; the password of the
probe, which may ask how the server is; and a folder in memory for the file that redis-start.sh writes. Call with
(dict "root" $ "role" "state").
*/}}
{{- define "five.redisUsersVolumes" -}}
- name: users
  secret:
    secretName: {{ include "five.secretName" (dict "root" .root "at" "redis" "user" "users") }}
    defaultMode: 0440
    items:
      - key: {{ .role }}.acl
        path: users.acl
- name: probe
  secret:
    secretName: {{ include "five.secretName" (dict "root" .root "at" "redis" "user" "probe") }}
    defaultMode: 0440
    items:
      - key: {{ .role }}-password
        path: password
- name: run
  emptyDir:
    medium: Memory
    sizeLimit: 4Mi
{{- end }}

{{- define "five.redisUsersMounts" -}}
- name: users
  mountPath: /etc/five-redis/users
  readOnly: true
- name: probe
  mountPath: /etc/five-redis/probe
  readOnly: true
- name: run
  mountPath: /run/five-redis
{{- end }}

{{/* Rights of the users of a server, without passwords. Call with the same. */}}
{{- define "five.redisRules" -}}
{{- .root.Files.Get (printf "files/users-%s.acl" .role) | replace "@run@" (include "five.runName" .root) }}
{{- end }}

{{/* Scripts of a server, as data of its ConfigMap. Call with the root. */}}
{{- define "five.redisScripts" -}}
start.sh: |
  {{- .Files.Get "files/redis-start.sh" | nindent 2 }}
stop.sh: |
  {{- .Files.Get "files/redis-stop.sh" | nindent 2 }}
{{- with include "five.tls.redisScript" . }}
certificates.sh: |
  {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Longest grace period of the clients of Redis, in seconds. Call with the root. */}}
{{- define "five.clientGraceSeconds" -}}
{{- $longest := 0 }}
{{- range $component := list "rollout" "optimizer" "controller" "opponents" "evaluator" "play" }}
{{- $longest = max $longest (int (include "five.graceSeconds" (dict "root" $ "component" $component "values" (index $.Values $component)))) }}
{{- end }}
{{- range $name, $pool := include "five.inferencePools" . | fromYaml }}
{{- $longest = max $longest (int $pool.terminationGracePeriodSeconds) }}
{{- end }}
{{- $longest }}
{{- end }}

{{/* Serves until the clients have drained. Call with the root. */}}
{{- define "five.redisLifecycle" -}}
{{- $command := concat (list "sh" "/etc/five-redis/conf/stop.sh" (include "five.clientGraceSeconds" .)) (include "five.tls.redisCli" . | splitList " " | compact) -}}
lifecycle:
  preStop:
    exec:
      command: {{ toJson $command }}
{{- end }}

{{/* Checksum that restarts a server when its users' rights change; passwords change without a restart. Call with the same. */}}
{{- define "five.redisUsersChecksum" -}}
checksum/users: {{ include "five.redisRules" . | sha256sum }}
{{- end }}

{{/* Alive: the server accepts connections. Ready: it answers PING, so its data is loaded. */}}
{{- define "five.redisProbes" -}}
startupProbe:
  tcpSocket:
    port: redis
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 36
livenessProbe:
  tcpSocket:
    port: redis
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 6
readinessProbe:
  exec:
    command:
      - sh
      - -c
      - REDISCLI_AUTH=$(cat /etc/five-redis/probe/password) redis-cli --user probe --no-auth-warning {{ with include "five.tls.redisCli" . }}{{ . }} {{ end }}ping | grep -q PONG
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}

{{/*
Memory for parameters in MiB: the versions that are kept, one that is being written, those that stay for readers in the
middle of them (store.grace_seconds), at least twice the kept ones, and for every reader the chunks on their way to it.
*/}}
{{- define "five.paramsMebibytes" -}}
{{- $facts := include "five.facts" . | fromYaml }}
{{- $store := .Values.run.overrides.store | default dict }}
{{- $version := divf $facts.parameter_bytes 1048576 | ceil | int }}
{{- $kept := $store.keep_versions | default $facts.keep_versions | int }}
{{- $grace := $facts.versions_in_grace }}
{{- with $store.grace_seconds }}
{{- $grace = divf . 60 | mulf $facts.versions_in_grace | ceil | int }}
{{- end }}
{{- $stored := max (mul $kept 2) (add $kept $grace 1) }}
{{- $chunk := $store.chunk_mebibytes | default 2 | float64 | ceil | int }}
{{- /* In steps of eight readers, so that few of the autoscaler's bounds restart the server. */}}
{{- $readers := div (add 7 (include "five.inferenceServers" .)) 8 | mul 8 }}
{{- add (mul $version $stored) (mul $chunk 4 $readers) 64 }}
{{- end }}

{{/* maxmemory of redis-params. */}}
{{- define "five.paramsMaxmemory" -}}
{{- .Values.redis.params.maxmemory | default (printf "%smb" (include "five.paramsMebibytes" .)) }}
{{- end }}

{{/* Requests and limits of redis-params: a quarter more than maxmemory, for what the allocator cannot use. */}}
{{- define "five.paramsResources" -}}
{{- $maxmemory := include "five.paramsMaxmemory" . }}
{{- $number := regexFind "^[0-9]+" $maxmemory | int64 }}
{{- $unit := get (dict "kb" 1 "mb" 1024 "gb" 1048576) (regexFind "[a-z]+$" $maxmemory) }}
{{- $memory := printf "%dMi" (add (div (mul $number $unit 5) 4096) 64) -}}
requests:
  cpu: {{ .Values.redis.params.cpuRequest | quote }}
  memory: {{ $memory }}
limits:
  cpu: {{ .Values.redis.params.cpuLimit | quote }}
  memory: {{ $memory }}
{{- end }}

{{/* maxmemory of redis-state in bytes. */}}
{{- define "five.stateBytes" -}}
{{- $units := dict "kb" 1024 "mb" 1048576 "gb" 1073741824 }}
{{- $maxmemory := .Values.redis.state.maxmemory }}
{{- mul (regexFind "^[0-9]+" $maxmemory | int64) (get $units (regexFind "[a-z]+$" $maxmemory)) }}
{{- end }}

{{/*
Records of each series that fit into redis-state: with a version and a game in 8 kB, of which they take 4.1, the rest of the
state has room.
*/}}
{{- define "five.seriesRecords" -}}
{{- min 200000 (max 1000 (div (include "five.stateBytes" . | int64) 8192)) }}
{{- end }}

{{/*
Refusals, one to a line. Call with the root. The kernel kills a server that exceeds its memory limit, which halts the run. A
server that reaches maxmemory refuses writes with an error instead.
*/}}
{{- define "five.redis.problems" -}}
{{- $state := .Values.redis.state }}
{{- $data := include "five.stateBytes" . | float64 }}
{{- $limit := $state.resources.limits.memory }}
{{- if and (not $state.external.host) (lt (include "five.bytes" $limit | float64) (mulf $data 1.5)) }}
redis.state.maxmemory: {{ $state.maxmemory }} of state need half as much again while the file is rewritten, and redis.state.resources.limits.memory is {{ $limit }}: raise it, or lower maxmemory
{{- end }}
{{- if not (or .Values.redis.image.tag .Values.redis.image.digest) }}
redis.image.tag: a tag is required without redis.image.digest, such as 8.2-bookworm
{{- end }}
{{- range $role := list "state" "params" }}
{{- $external := (index $.Values.redis $role).external }}
{{- $hosts := ternary (splitList "," $external.host) list (ne $external.host "") }}
{{- range $host := $hosts }}
{{- /* A name, an IPv4 or an IPv6 address; one colon alone is a port's. */}}
{{- if not (regexMatch "^([A-Za-z0-9._-]+|\\[?[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f.:]*\\]?)$" (trim $host)) }}
{{ printf "redis.%s.external.host %q: only a host name or an IP address is allowed; its port is redis.%s.external.port" $role $host $role }}
{{- end }}
{{- end }}
{{- if and (gt (len $hosts) 1) (not $external.sentinel.primary) }}
{{ printf "redis.%s.external.host %q: several hosts are Redis Sentinels: set redis.%s.external.sentinel.primary, or name one host" $role $external.host $role }}
{{- end }}
{{- end }}
{{- end }}

{{/* Most inference servers that there can be. */}}
{{- define "five.inferenceServers" -}}
{{- $servers := 0 }}
{{- range $name, $pool := include "five.inferencePools" . | fromYaml }}
{{- $autoscaled := include "five.autoscaled" (dict "root" $ "component" "inference" "values" $pool) }}
{{- $servers = add $servers (ternary $.Values.autoscaling.inference.maxReplicas $pool.replicas (eq $autoscaled "true")) }}
{{- end }}
{{- $servers }}
{{- end }}

{{/* redis.conf of redis-state. */}}
{{- define "five.redisConfig.state" -}}
dir /data
{{ include "five.tls.redisServerConfig" . }}
aclfile /run/five-redis/users.acl
# Every write, on disk within a second: at most that much of the run is lost with the machine.
appendonly yes
appendfsync everysec
save ""
maxmemory {{ .Values.redis.state.maxmemory }}
maxclients {{ int .Values.redis.state.maxclients }}
maxmemory-policy noeviction
{{- end }}

{{/* redis.conf of redis-params. */}}
{{- define "five.redisConfig.params" -}}
{{ include "five.tls.redisServerConfig" . }}
aclfile /run/five-redis/users.acl
# Nothing is written to disk: writing a version would cost ten times as much.
appendonly no
save ""
maxmemory {{ include "five.paramsMaxmemory" . }}
# A version is whole or not there: a publish that does not fit is refused.
maxmemory-policy noeviction
# Sending versions is most of its work; the second thread writes to sockets.
io-threads 2
{{- end }}
