{{/*
TLS of gRPC and of Redis, either from cert-manager or from a Secret that is there (tls.crt, tls.key, ca.crt).
*/}}

{{/* Secret with the certificate of the gRPC services. */}}
{{- define "five.tls.grpcSecretName" -}}
{{- .Values.tls.grpc.existingSecret | default (printf "%s-grpc-tls" (include "five.fullname" .)) -}}
{{- end }}

{{/* Secret with the certificate of both Redis servers. */}}
{{- define "five.tls.redisSecretName" -}}
{{- .Values.tls.redis.existingSecret | default (printf "%s-redis-tls" (include "five.fullname" .)) -}}
{{- end }}

{{/* "true" where a Redis of this release serves TLS. One outside has a certificate of its own. */}}
{{- define "five.tls.redisServed" -}}
{{- $redis := .Values.redis }}
{{- if and .Values.tls.redis.enabled (not (and $redis.state.external.host $redis.params.external.host)) }}true{{ end }}
{{- end }}

{{/* "true" where clients trust the authority in the Secret; without it, those that their image knows. */}}
{{- define "five.tls.redisAuthority" -}}
{{- if or (include "five.tls.redisServed" .) (and .Values.tls.redis.enabled .Values.tls.redis.existingSecret) }}true{{ end }}
{{- end }}

{{/* The Services at which gRPC is served, as a JSON array of {name, perPod}: perPod where pods are dialled by name. */}}
{{- define "five.tls.grpcServices" -}}
{{- $services := list }}
{{- range $pool := include "five.inferencePools" . | fromYaml | keys | sortAlpha }}
{{- $services = append $services (dict "name" (include "five.componentName" (dict "root" $ "component" "inference" "pool" $pool))) }}
{{- end }}
{{- $services = append $services (dict "name" (include "five.componentName" (dict "root" $ "component" "optimizer")) "perPod" true) }}
{{- $services = append $services (dict "name" (include "five.componentName" (dict "root" $ "component" "opponents"))) }}
{{- if .Values.evaluator.enabled }}
{{- $services = append $services (dict "name" (include "five.componentName" (dict "root" $ "component" "evaluator"))) }}
{{- end }}
{{- if .Values.play.enabled }}
{{- $services = append $services (dict "name" (include "five.componentName" (dict "root" $ "component" "play"))) }}
{{- end }}
{{- if eq .Values.dotaEnv.placement "deployment" }}
{{- $services = append $services (dict "name" (include "five.componentName" (dict "root" $ "component" "dota-env"))) }}
{{- end }}
{{- toJson $services }}
{{- end }}

{{/* Every name by which a Service is dialled. Call with (dict "root" $ "name" SERVICE "perPod" BOOL). */}}
{{- define "five.tls.dnsNames" -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $domain := .root.Values.global.clusterDomain -}}
- {{ .name | quote }}
- {{ printf "%s.%s" .name $namespace | quote }}
- {{ printf "%s.%s.svc" .name $namespace | quote }}
- {{ printf "%s.%s.svc.%s" .name $namespace $domain | quote }}
{{- if .perPod }}
{{- /* A wildcard stands for one label, and clients take it only above a name of two labels or more. */}}
- {{ printf "*.%s.%s.svc" .name $namespace | quote }}
- {{ printf "*.%s.%s.svc.%s" .name $namespace $domain | quote }}
{{- end }}
{{- end }}

{{/* All names of the gRPC services' certificate, as YAML: dnsNames and ipAddresses. */}}
{{- define "five.tls.grpcNames" -}}
dnsNames:
  # The game containers beside a rollout.
  - localhost
  {{- range $service := include "five.tls.grpcServices" . | fromJsonArray }}
  {{- include "five.tls.dnsNames" (dict "root" $ "name" $service.name "perPod" $service.perPod) | nindent 2 }}
  {{- end }}
ipAddresses:
  # By which rollouts dial them.
  - 127.0.0.1
{{- end }}

{{/* Common fields of both Certificates. */}}
{{- define "five.tls.issued" -}}
duration: {{ .Values.tls.certManager.duration }}
renewBefore: {{ .Values.tls.certManager.renewBefore }}
privateKey:
  algorithm: ECDSA
  size: 256
  rotationPolicy: Always
issuerRef:
  {{- toYaml .Values.tls.certManager.issuerRef | nindent 2 }}
{{- end }}

{{/* Volumes of a client's pod. Call with (dict "root" $ "of" LIST), of "grpc" and "redis"; a service has both. */}}
{{- define "five.tls.volumes" -}}
{{- if and .root.Values.tls.grpc.enabled (has "grpc" .of) }}
- name: grpc-tls
  secret:
    secretName: {{ include "five.tls.grpcSecretName" .root }}
    defaultMode: 0440
{{- end }}
{{- if and (include "five.tls.redisAuthority" .root) (has "redis" .of) }}
- name: redis-ca
  secret:
    secretName: {{ include "five.tls.redisSecretName" .root }}
    defaultMode: 0440
    items:
      - key: ca.crt
        path: ca.crt
{{- end }}
{{- end }}

{{/* Mounts of these volumes. Call with the same. */}}
{{- define "five.tls.mounts" -}}
{{- if and .root.Values.tls.grpc.enabled (has "grpc" .of) }}
- name: grpc-tls
  mountPath: /etc/five/tls
  readOnly: true
{{- end }}
{{- if and (include "five.tls.redisAuthority" .root) (has "redis" .of) }}
- name: redis-ca
  mountPath: /etc/five/redis-tls
  readOnly: true
{{- end }}
{{- end }}

{{/* TLS settings of the run's configuration, as YAML to merge over the rest. Call with the root. */}}
{{- define "five.tls.config" -}}
{{- if .Values.tls.grpc.enabled }}
rpc:
  tls:
    authority: /etc/five/tls/ca.crt
    certificate: /etc/five/tls/tls.crt
    key: /etc/five/tls/tls.key
    require_client_certificate: {{ .Values.tls.grpc.requireClientCertificate }}
{{- end }}
{{- if include "five.tls.redisAuthority" . }}
store:
  tls_authority: /etc/five/redis-tls/ca.crt
{{- end }}
{{- end }}

{{/* Volume and mount of a Redis server. Call with the root. */}}
{{- define "five.tls.redisServerVolumes" -}}
{{- if .Values.tls.redis.enabled }}
- name: tls
  secret:
    secretName: {{ include "five.tls.redisSecretName" . }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{- define "five.tls.redisServerMounts" -}}
{{- if .Values.tls.redis.enabled }}
- name: tls
  mountPath: /etc/five-redis/tls
  readOnly: true
{{- end }}
{{- end }}

{{/* Script that makes a server reload its certificates. Call with the root. */}}
{{- define "five.tls.redisScript" -}}
{{- if .Values.tls.redis.enabled }}
{{- .Files.Get "files/redis-certificates.sh" }}
{{- end }}
{{- end }}

{{/* Container in a server's pod that runs the script. Call with the server's component. */}}
{{- define "five.tls.redisWatch" -}}
{{- if .root.Values.tls.redis.enabled }}
- name: certificates
  image: {{ include "five.redisImage" .root }}
  imagePullPolicy: {{ .root.Values.global.image.pullPolicy }}
  command: [sh, /etc/five-redis/conf/certificates.sh, watch]
  livenessProbe:
    exec:
      command: [sh, /etc/five-redis/conf/certificates.sh, alive]
    initialDelaySeconds: 15
    periodSeconds: 30
    timeoutSeconds: 5
  resources:
    requests: {cpu: 5m, memory: 16Mi}
    limits: {cpu: 50m, memory: 32Mi}
  securityContext:
    {{- include "five.containerSecurityContext" . | nindent 4 }}
  volumeMounts:
    - name: config
      mountPath: /etc/five-redis/conf
      readOnly: true
    - name: run
      mountPath: /run/five-redis
    {{- include "five.tls.redisServerMounts" .root | trim | nindent 4 }}
{{- end }}
{{- end }}

{{/* Lines of redis.conf; the port with TLS takes the place of the one without. */}}
{{- define "five.tls.redisServerConfig" -}}
{{- if .Values.tls.redis.enabled -}}
port 0
tls-port 6379
tls-cert-file /etc/five-redis/tls/tls.crt
tls-key-file /etc/five-redis/tls/tls.key
tls-ca-cert-file /etc/five-redis/tls/ca.crt
tls-auth-clients no
# By which the container beside it has it read its certificates again.
unixsocket /run/five-redis/redis.sock
unixsocketperm 700
{{- else -}}
port 6379
{{- end }}
{{- end }}

{{/* Arguments of redis-cli in probes. */}}
{{- define "five.tls.redisCli" -}}
{{- if .Values.tls.redis.enabled }}--tls --cacert /etc/five-redis/tls/ca.crt{{ end -}}
{{- end }}

{{/* Refusals, one to a line. Call with the root. */}}
{{- define "five.tls.problems" -}}
{{- $issuer := .Values.tls.certManager.issuerRef.name -}}
{{- range $what := list "grpc" "redis" }}
{{- $tls := index $.Values.tls $what }}
{{- $needed := ternary $tls.enabled (include "five.tls.redisServed" $) (eq $what "grpc") }}
{{- if and $needed (not $tls.existingSecret) (not $issuer) }}
{{ printf "tls.%s.enabled: there is no certificate. Give tls.%s.existingSecret (keys tls.crt, tls.key, ca.crt), or tls.certManager.issuerRef.name to have cert-manager issue one" $what $what }}
{{- end }}
{{- end }}
{{- end }}
