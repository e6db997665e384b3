# History of a small cluster as OpenMetrics, for promtool: eight days that end at -v now=SECONDS, a sample every five minutes, as
# cAdvisor and kube-state-metrics of today tell it. -v web=POD names the pod that runs, -v facts=no leaves out kube-state-metrics.
# In two of five hours web uses twice as much. db ran out of memory three times. Everything is a function of the hour alone.
function usage(name) { return name == "web" ? (hour % 5 < 2 ? 0.78 : 0.39) : name == "db" ? 1.5 : 0.1 }
function bytes(name) { return name == "web" ? 700000000 + (hour % 5) * 1000000 : name == "db" ? 4000000000 : 50000000 }
function each(metric, value_of,    i, t, total, last) {
    for (i = 1; i <= pods; i++) {
        total = 0
        last = end[i] > 0 ? now - end[i] * 86400 : now
        for (t = now - start[i] * 86400; t <= last; t += 300) {
            hour = int((t - (now - 8 * 86400)) / 3600)
            total += usage(container[i]) * 300
            printf "%s{job=\"kubelet\",namespace=\"%s\",pod=\"%s\",container=\"%s\",image=\"i\",id=\"/k/%d\"} %.3f %d\n", metric,
                namespace[i], pod[i], container[i], i, value_of == "cpu" ? total : bytes(container[i]), t
        }
    }
}
function fact(metric, labels, value, from, to,    t) {
    for (t = now - from * 86400; t <= now - to * 86400; t += 300) printf "%s{job=\"ksm\",%s} %s %d\n", metric, labels, value, t
}
function add(ns, name, box, from, to) { pods++; namespace[pods] = ns; pod[pods] = name; container[pods] = box; start[pods] = from; end[pods] = to }
function of(i) { return "namespace=\"" namespace[i] "\",pod=\"" pod[i] "\"" }
BEGIN {
    if (web == "") web = "web-7d4b9c6f5-x2x4z"
    add("shop", web, "web", 5, 0)
    add("shop", "web-5c6d7e8f9-aaaaa", "web", 8, 5)
    add("shop", "db-0", "db", 8, 0)
    add("shop", "report-28123456-bbbbb", "report", 2, 1.9)
    add("shop", "alone", "alone", 8, 0)
    add("other", "agent-ccccc", "agent", 8, 0)
    print "# TYPE container_cpu_usage_seconds counter"
    each("container_cpu_usage_seconds_total", "cpu")
    print "# TYPE container_memory_working_set_bytes gauge"
    each("container_memory_working_set_bytes", "memory")
    if (facts != "no") {
        print "# TYPE kube_pod_owner gauge"
        split("ReplicaSet ReplicaSet StatefulSet Job . DaemonSet", kinds, " ")
        split("web-7d4b9c6f5 web-5c6d7e8f9 db report-28123456 . agent", names, " ")
        for (i = 1; i <= pods; i++) fact("kube_pod_owner", of(i) ",owner_kind=\"" (kinds[i] == "." ? "" : kinds[i]) "\",owner_name=\"" \
            (names[i] == "." ? "" : names[i]) "\",owner_is_controller=\"" (kinds[i] == "." ? "false" : "true") "\"", 1, start[i], end[i])
        print "# TYPE kube_replicaset_owner gauge"
        for (i = 1; i <= 2; i++) fact("kube_replicaset_owner", "namespace=\"shop\",replicaset=\"" names[i] \
            "\",owner_kind=\"Deployment\",owner_name=\"web\",owner_is_controller=\"true\"", 1, start[i], end[i])
        print "# TYPE kube_job_owner gauge"
        fact("kube_job_owner", "namespace=\"shop\",job_name=\"report-28123456\",owner_kind=\"CronJob\",owner_name=\"report\"", 1, 2, 1.9)
        print "# TYPE kube_pod_labels gauge"
        for (i = 1; i <= 2; i++) fact("kube_pod_labels", of(i) ",label_app_kubernetes_io_name=\"web\"", 1, start[i], end[i])
        print "# TYPE kube_pod_container_resource_requests gauge"
        split("2 2 1 0.5", cpus, " ")
        split("4294967296 4294967296 4294967296 67108864", memories, " ")
        for (i = 1; i <= 4; i++) {
            fact("kube_pod_container_resource_requests", of(i) ",container=\"" container[i] "\",resource=\"cpu\"", cpus[i], start[i], end[i])
            fact("kube_pod_container_resource_requests", of(i) ",container=\"" container[i] "\",resource=\"memory\"", memories[i], start[i], end[i])
        }
        print "# TYPE kube_pod_container_resource_limits gauge"
        fact("kube_pod_container_resource_limits", of(3) ",container=\"db\",resource=\"memory\"", 4294967296, 8, 0)
        print "# TYPE kube_pod_container_status_restarts counter"
        for (i = 0; i < 4; i++) fact("kube_pod_container_status_restarts_total", of(3) ",container=\"db\"", i, 8 - 2 * i - (i > 0 ? 0.5 : 0), \
            i < 3 ? 6 - 2 * i - 0.496 : 0)
        print "# TYPE kube_pod_container_status_last_terminated_reason gauge"
        fact("kube_pod_container_status_last_terminated_reason", of(3) ",container=\"db\",reason=\"OOMKilled\"", 1, 5.5, 0)
    }
    print "# EOF"
}
