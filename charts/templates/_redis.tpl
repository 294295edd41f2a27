{{/*
The two Redis servers.
*/}}

{{/* "true" where the release runs the Redis of a role itself. Call with (dict "root" $ "role" "state"). */}}
{{- define "five.ownsRedis" -}}
{{- if not (index .root.Values.redis .role).external.host }}true{{ end }}
{{- end }}

{{/* The probe's password, under the name by which redis-cli finds it: it may ask how the server is. Call with (dict "root" $ "role" "state"). */}}
{{- define "five.redisEnv" -}}
- name: REDISCLI_AUTH
  valueFrom:
    secretKeyRef:
      name: {{ include "five.secretName" (dict "root" .root "at" "redis" "user" "probe") }}
      key: {{ .role }}-password
{{- end }}

{{/* Volume of the users' file, in a folder of its own: a file that changes in the Secret changes there. Call with the same. */}}
{{- define "five.redisUsersVolume" -}}
- name: users
  secret:
    secretName: {{ include "five.secretName" (dict "root" .root "at" "redis" "user" "users") }}
    defaultMode: 0440
    items:
      - key: {{ .role }}.acl
        path: users.acl
{{- end }}

{{- define "five.redisUsersMount" -}}
- name: users
  mountPath: /etc/five-redis/users
  readOnly: true
{{- end }}

{{/* Restarts a server whose users may do something else than before; their passwords are changed without. Call with the same. */}}
{{- define "five.redisUsersChecksum" -}}
checksum/users: {{ printf "%s %s" (include "five.runName" .root) (.root.Files.Get (printf "files/users-%s.acl" .role)) | sha256sum }}
{{- end }}

{{/* Alive: it takes connections. Ready: it answers, so whatever it had to load is loaded. */}}
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
      - redis-cli --user probe --no-auth-warning {{ with include "five.tls.redisCli" . }}{{ . }} {{ end }}ping | grep -q PONG
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}

{{/*
Memory for parameters in MiB: the versions that are kept, as many again that are being written or that readers are in the
middle of (store.grace_seconds), and for every reader the chunks on their way to it.
*/}}
{{- define "five.paramsMebibytes" -}}
{{- $facts := include "five.facts" . | fromYaml }}
{{- $store := .Values.run.overrides.store | default dict }}
{{- $version := divf $facts.parameter_bytes 1048576 | ceil | int }}
{{- $kept := $store.keep_versions | default $facts.keep_versions | int }}
{{- $chunk := $store.chunk_mebibytes | default 2 | float64 | ceil | int }}
{{- /* In steps of eight readers, so that few of the autoscaler's bounds restart the server. */}}
{{- $readers := div (add 7 (include "five.inferenceServers" .)) 8 | mul 8 }}
{{- add (mul $version $kept 2) (mul $chunk 4 $readers) 64 }}
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

{{/*
Refusals, one to a line. Call with the root. The kernel ends a server that outgrows its limit, and with it at that moment
the run; one that is only full refuses the write and says so.
*/}}
{{- define "five.redis.problems" -}}
{{- $state := .Values.redis.state }}
{{- $units := dict "kb" 1024 "mb" 1048576 "gb" 1073741824 }}
{{- $data := mulf (regexFind "^[0-9]+" $state.maxmemory | float64) (get $units (regexFind "[a-z]+$" $state.maxmemory)) }}
{{- $limit := toString $state.resources.limits.memory }}
{{- $kubernetes := dict "" 1 "m" 0.001 "k" 1e3 "Ki" 1024 "M" 1e6 "Mi" 1048576 "G" 1e9 "Gi" 1073741824 "T" 1e12 "Ti" 1099511627776 }}
{{- $room := mulf (regexFind "^[0-9.]+" $limit | float64) (get $kubernetes (regexFind "[A-Za-z]*$" $limit)) }}
{{- if and (not $state.external.host) (lt $room (mulf $data 1.5)) }}
redis.state.maxmemory: {{ $state.maxmemory }} of state need half as much again while the file is rewritten, and redis.state.resources.limits.memory is {{ $limit }}: raise it, or lower maxmemory
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
aclfile {{ ternary "/run/five-redis" "/etc/five-redis/users" .Values.tls.redis.enabled }}/users.acl
# Every write, on disk within a second: at most that much of the run is lost with the machine.
appendonly yes
appendfsync everysec
save ""
maxmemory {{ .Values.redis.state.maxmemory }}
maxclients {{ .Values.redis.state.maxclients }}
maxmemory-policy noeviction
{{- end }}

{{/* redis.conf of redis-params. */}}
{{- define "five.redisConfig.params" -}}
{{ include "five.tls.redisServerConfig" . }}
aclfile {{ ternary "/run/five-redis" "/etc/five-redis/users" .Values.tls.redis.enabled }}/users.acl
# Nothing is written to disk: writing a version would cost ten times as much.
appendonly no
save ""
maxmemory {{ include "five.paramsMaxmemory" . }}
# A version is whole or not there: a publish that does not fit is refused.
maxmemory-policy noeviction
# Sending versions is most of its work; the second thread writes to sockets.
io-threads 2
{{- end }}
