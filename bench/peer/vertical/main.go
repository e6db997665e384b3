// The peer of bench_vertical: upstream's recommender model and estimator over the same cluster and the same stream.
//
// Upstream compares every pod with every VPA of the cluster, in whatever namespace, when it is set up: minutes at this
// size. So each namespace is given a model of its own, all in this one process; no pod is selected across namespaces, and
// everything that upstream keeps is there once. Setting up is not compared; smaller tables fit better into caches, to
// upstream's advantage.
//
// Memory is what a user sees: the resident memory of the process (VmRSS) after rounds of feeding and recommending, less
// that before the models were set up. The collector runs as it does in production (default GOGC, nothing forced before
// the figure is read). Names of pods and the VPA objects are there before, and upstream's model shares their texts while
// ours copies them. The live heap, what is left after a forced collection, is printed as a further figure.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	autoscaling "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	vpa_types "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/routines"
)

const (
	vpas         = 10000
	perNamespace = 100
	podsPerVpa   = 15
	pods         = vpas * podsPerVpa
	containers   = 2
	seed         = 7
	warmRounds   = 24
	rounds       = 5
	rollouts     = 7
	day          = 24 * time.Hour
)

var (
	containerNames = [containers]string{"app", "sidecar"}
	start          = time.Unix(1772323200, 0).UTC()
)

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func residentMib() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for _, line := range strings.Split(string(status), "\n") {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			return kib / 1024
		}
	}
	panic("/proc/self/status has no VmRSS")
}

func liveMib() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc) / (1 << 20)
}

type bench struct {
	clusters    []model.ClusterState // one per namespace
	objects     []*vpa_types.VerticalPodAutoscaler
	ids         []model.PodID
	recommender logic.PodResourceRecommender
	capping     routines.RecommendationPostProcessor
	now         time.Time
	round       int
}

func (b *bench) cluster(v int) model.ClusterState { return b.clusters[v/perNamespace] }

func namespace(v int) string { return fmt.Sprintf("team-%d", v/perNamespace) }

func makeVpa(v int) *vpa_types.VerticalPodAutoscaler {
	name := fmt.Sprintf("vpa-%d", v)
	mode := vpa_types.UpdateModeRecreate
	return &vpa_types.VerticalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace(v), Generation: 1},
		Spec: vpa_types.VerticalPodAutoscalerSpec{
			TargetRef:    &autoscaling.CrossVersionObjectReference{Kind: "Deployment", Name: name, APIVersion: "apps/v1"},
			UpdatePolicy: &vpa_types.PodUpdatePolicy{UpdateMode: &mode},
		},
	}
}

func setVpa(cluster model.ClusterState, object *vpa_types.VerticalPodAutoscaler) {
	selector := labels.SelectorFromSet(labels.Set{"app": object.Name})
	if err := cluster.AddOrUpdateVpa(object, selector); err != nil {
		panic(err)
	}
}

func addPod(cluster model.ClusterState, id model.PodID, set labels.Set) {
	cluster.AddOrUpdatePod(id, set, corev1.PodRunning)
	for _, name := range containerNames {
		if err := cluster.AddOrUpdateContainer(model.ContainerID{PodID: id, ContainerName: name}, nil); err != nil {
			panic(err)
		}
	}
}

func templateHash(rollout int) string { return fmt.Sprintf("5d9c7b8f%02x", rollout) }

// The names of the pods of a template, which are the caller's.
func (b *bench) name(v, rollout int) {
	for p := v * podsPerVpa; p < (v+1)*podsPerVpa; p++ {
		b.ids[p] = model.PodID{Namespace: namespace(v), PodName: fmt.Sprintf("vpa-%d-%s-%05x", v, templateHash(rollout), p)}
	}
}

func (b *bench) addPods(v, rollout int) {
	set := labels.Set{"app": b.objects[v].Name, "pod-template-hash": templateHash(rollout)}
	for p := v * podsPerVpa; p < (v+1)*podsPerVpa; p++ {
		addPod(b.cluster(v), b.ids[p], set)
	}
}

func addSamples(cluster model.ClusterState, id model.PodID, name string, r uint64, now time.Time) {
	container := model.ContainerID{PodID: id, ContainerName: name}
	cpu := &model.ContainerUsageSampleWithKey{Container: container, ContainerUsageSample: model.ContainerUsageSample{
		MeasureStart: now, Usage: model.ResourceAmount(50 + r%400), Resource: model.ResourceCPU}}
	memory := &model.ContainerUsageSampleWithKey{Container: container, ContainerUsageSample: model.ContainerUsageSample{
		MeasureStart: now, Usage: model.ResourceAmount((200 + (r>>16)%300) << 20), Resource: model.ResourceMemory}}
	if err := cluster.AddSample(cpu); err != nil {
		panic(err)
	}
	if err := cluster.AddSample(memory); err != nil {
		panic(err)
	}
}

func (b *bench) feed(pause time.Duration) {
	for p, id := range b.ids {
		cluster := b.cluster(p / podsPerVpa)
		for c, name := range containerNames {
			addSamples(cluster, id, name, mix(uint64(seed+b.round*pods*containers+p*containers+c)), b.now)
		}
	}
	b.round++
	b.now = b.now.Add(pause)
}

func (b *bench) recommend() {
	format := logic.RecommendationFormat{RoundCPUMillicores: 1, RoundMemoryBytes: 1}
	for v, object := range b.objects {
		vpa := b.cluster(v).VPAs()[model.VpaID{Namespace: object.Namespace, VpaName: object.Name}]
		resources := b.recommender.GetRecommendedPodResources(routines.GetContainerNameToAggregateStateMap(vpa))
		list := b.capping.Process(object, logic.MapToListOfRecommendedContainerResources(resources, format))
		vpa.UpdateRecommendation(list)
		vpa.UpdateConditions(vpa.PodCount > 0)
		_ = vpa.AsStatus()
	}
}

func newBench() *bench {
	b := &bench{
		objects: make([]*vpa_types.VerticalPodAutoscaler, vpas),
		ids:     make([]model.PodID, pods),
		recommender: logic.CreatePodResourceRecommender(logic.RecommendationConfig{
			SafetyMarginFraction: 0.15, PodMinCPUMillicores: 25, PodMinMemoryMb: 250,
			TargetCPUPercentile: 0.9, LowerBoundCPUPercentile: 0.5, UpperBoundCPUPercentile: 0.95, ConfidenceIntervalCPU: day,
			TargetMemoryPercentile: 0.9, LowerBoundMemoryPercentile: 0.5, UpperBoundMemoryPercentile: 0.95, ConfidenceIntervalMemory: day,
		}),
		capping: routines.NewCappingRecommendationProcessor(nil),
		now:     start,
	}
	for v := range b.objects {
		b.objects[v] = makeVpa(v)
		b.name(v, 0)
	}
	return b
}

func (b *bench) setUp() {
	for n := 0; n < vpas/perNamespace; n++ {
		b.clusters = append(b.clusters, model.NewClusterState(time.Hour))
	}
	for v, object := range b.objects {
		setVpa(b.cluster(v), object)
	}
	for v := range b.objects {
		b.addPods(v, 0)
	}
}

// A rollout of everything: pods of a new template take the place of those before.
func (b *bench) rollOut(rollout int) {
	for v := range b.objects {
		for p := v * podsPerVpa; p < (v+1)*podsPerVpa; p++ {
			b.cluster(v).DeletePod(b.ids[p])
		}
		b.name(v, rollout)
		b.addPods(v, rollout)
	}
}

func runCluster(figures *figures) {
	b := newBench()
	runtime.GC()
	before := residentMib()
	liveBefore := liveMib()
	b.setUp()
	for i := 0; i < warmRounds; i++ {
		b.feed(time.Hour)
		b.recommend()
	}
	at := cpuSeconds()
	for i := 0; i < rounds; i++ {
		b.feed(time.Minute)
	}
	figures.print("vertical.peer.feed.cpu", (cpuSeconds()-at)/rounds, "s")
	at = cpuSeconds()
	for i := 0; i < rounds; i++ {
		b.recommend()
	}
	figures.print("vertical.peer.recommend.cpu", (cpuSeconds()-at)/rounds, "s")
	figures.print("vertical.peer.memory", residentMib()-before, "MiB")
	figures.print("vertical.peer.memory_live", liveMib()-liveBefore, "MiB")
	for rollout := 1; rollout <= rollouts; rollout++ {
		b.rollOut(rollout)
		b.feed(day)
		b.recommend()
	}
	figures.print("vertical.peer.memory_rollouts", residentMib()-before, "MiB")
	runtime.KeepAlive(b)
}

func main() {
	path := flag.String("ours", "", "file with the lines of bench_vertical")
	flag.Parse()
	model.InitializeAggregationsConfig(model.NewAggregationsConfig(day, 8, day, day, 1.2, 100*1024*1024))
	figures := readFigures(*path)
	runCluster(figures)
	runRollouts(figures)
	if !figures.compare() {
		os.Exit(1)
	}
}
