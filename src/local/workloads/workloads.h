/*
 * The controllers of workloads: Deployment, ReplicaSet, ReplicationController, StatefulSet,
 * DaemonSet, Job and CronJob, with the behaviour of kube-controller-manager as far as an
 * autoscaler or kubectl can see it. Changes in the store put the keys of those concerned into
 * queues; a pass looks at one workload and its own pods, never at all. Pods are created through
 * the API handler, so that admission sees them. One thread, the loop's.
 */
#pragma once

struct td_api;
struct td_log;
struct td_workloads;

struct td_workloads *td_workloads_new(struct td_api *api, struct td_log *log); /* log may be NULL */
void td_workloads_free(struct td_workloads *workloads); /* NULL is accepted */
