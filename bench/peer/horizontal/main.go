// The peer of bench_horizontal: upstream's replica calculator over the same made-up cluster, written
// from the formula in bench/bench_horizontal.c. It prints its own CPU time and, given the other
// program's output, how many times slower it is; sums of replicas must agree.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	autoscaling "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

const (
	hpas       = 10000
	podsPerHPA = 15
	seed       = 7
	target     = 60
	rounds     = 10
	promise    = 5.0
)

// mix is splitmix64's finisher.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

type sample struct {
	name  string
	value int64
}

// cluster serves one HPA at a time, as the metrics client and as the pod lister.
type cluster struct {
	pods    [][]*v1.Pod
	samples [][]sample
	at      int
	now     time.Time
}

func build(now time.Time) *cluster {
	c := &cluster{now: now, pods: make([][]*v1.Pod, hpas), samples: make([][]sample, hpas)}
	for h := 0; h < hpas; h++ {
		load := 20 + mix(seed^uint64(h)<<32)%100
		for p := 0; p < podsPerHPA; p++ {
			r := mix(seed + uint64(h)*podsPerHPA + uint64(p))
			request := int64(250 * (1 + r%4))
			usage := request * int64(load+(r>>8)%20) / 100
			age := time.Hour
			ready := v1.ConditionTrue
			if (r>>16)%25 == 0 {
				age = time.Minute
				ready = v1.ConditionFalse
			}
			start := metav1.NewTime(now.Add(-age))
			name := fmt.Sprintf("web-%d-%d", h, p)
			c.pods[h] = append(c.pods[h], &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
				Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app", Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(request, resource.DecimalSI)}}}}},
				Status: v1.PodStatus{Phase: v1.PodRunning, StartTime: &start,
					Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: ready, LastTransitionTime: start}}},
			})
			if (r>>24)%20 != 0 {
				c.samples[h] = append(c.samples[h], sample{name, usage})
			}
		}
	}
	return c
}

func (c *cluster) GetResourceMetric(context.Context, v1.ResourceName, string, labels.Selector, string) (metrics.PodMetricsInfo, time.Time, error) {
	info := make(metrics.PodMetricsInfo, podsPerHPA)
	for _, s := range c.samples[c.at] {
		info[s.name] = metrics.PodMetric{Timestamp: c.now, Window: 30 * time.Second, Value: s.value}
	}
	return info, c.now, nil
}

func (c *cluster) GetRawMetric(string, string, labels.Selector, labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	return nil, c.now, nil
}

func (c *cluster) GetObjectMetric(string, string, *autoscaling.CrossVersionObjectReference, labels.Selector) (int64, time.Time, error) {
	return 0, c.now, nil
}

func (c *cluster) GetExternalMetric(string, string, labels.Selector) ([]int64, time.Time, error) {
	return nil, c.now, nil
}

func (c *cluster) List(labels.Selector) ([]*v1.Pod, error)            { return c.pods[c.at], nil }
func (c *cluster) Pods(string) corelisters.PodNamespaceLister         { return namespaced{c} }
func (n namespaced) List(selector labels.Selector) ([]*v1.Pod, error) { return n.c.List(selector) }
func (n namespaced) Get(string) (*v1.Pod, error)                      { return nil, os.ErrNotExist }

type namespaced struct{ c *cluster }

func cpu() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}

// judge passes over all HPAs once and returns the sum of proposals.
func judge(c *cluster, calculator *podautoscaler.ReplicaCalculator, tolerances podautoscaler.Tolerances) int64 {
	sum := int64(0)
	for c.at = 0; c.at < hpas; c.at++ {
		replicas, _, _, _, err := calculator.GetResourceReplicas(context.Background(), podsPerHPA, target, v1.ResourceCPU, tolerances, "shop", labels.Everything(), "")
		if err == nil {
			sum += int64(replicas)
		}
	}
	return sum
}

// figure finds "bench NAME VALUE UNIT" in another program's output.
func figure(path, name string) (float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 4 && words[0] == "bench" && words[1] == name {
			return strconv.ParseFloat(words[2], 64)
		}
	}
	return 0, fmt.Errorf("%s: no figure %s", path, name)
}

func main() {
	ours := flag.String("ours", "", "output of bench_horizontal")
	flag.Parse()
	c := build(time.Now())
	calculator := podautoscaler.NewReplicaCalculator(c, c, 5*time.Minute, 30*time.Second)
	// Upstream keeps the fields of Tolerances to itself, so a peer can only ask for none; ours does the same.
	tolerances := podautoscaler.Tolerances{}
	sum := judge(c, calculator, tolerances)
	before := cpu()
	for i := 0; i < rounds; i++ {
		judge(c, calculator, tolerances)
	}
	seconds := (cpu() - before) / rounds
	fmt.Printf("bench horizontal.peer.cpu %.4f s\n", seconds)
	fmt.Printf("bench horizontal.peer.replicas %d replicas\n", sum)
	if *ours == "" {
		return
	}
	theirs, err := figure(*ours, "horizontal.decide.cpu")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	replicas, err := figure(*ours, "horizontal.replicas")
	if err != nil || int64(replicas) != sum {
		fmt.Fprintf(os.Stderr, "sums of replicas differ: %d here, %.0f there\n", sum, replicas)
		os.Exit(1)
	}
	fmt.Printf("bench horizontal.vs_upstream %.1f x\n", seconds/theirs)
	if seconds/theirs < promise {
		fmt.Fprintf(os.Stderr, "promised at least %.0f x\n", promise)
		os.Exit(1)
	}
}
