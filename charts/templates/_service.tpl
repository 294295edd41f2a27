{{/* Address families of a Service's spec, empty where the cluster decides. */}}
{{- define "five.ipFamilies" -}}
{{- with .Values.global.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.global.ipFamilies }}
ipFamilies: {{ toJson . }}
{{- end }}
{{- end }}
