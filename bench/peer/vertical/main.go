// The peer of bench_vertical: upstream's recommender model and estimator over the same stream, at a tenth of the size,
// because upstream compares every pod with every VPA when it is set up. Feeding and recommending are linear in the
// number of containers, so the figures are multiplied by ten; the smaller model fits better into caches, to upstream's
// advantage. Memory is the live heap after a collection, what a process cannot do without.
package main

import (
	"bufio"
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
	scale        = 10
	vpas         = 10000 / scale
	perNamespace = 100
	podsPerVpa   = 15
	pods         = vpas * podsPerVpa
	containers   = 2
	seed         = 7
	warmRounds   = 24
	rounds       = 5
)

var containerNames = [containers]string{"app", "sidecar"}

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

func liveMib() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc) / (1 << 20)
}

func namespace(v int) string { return fmt.Sprintf("team-%d", v/perNamespace) }

func makeVpa(cluster model.ClusterState, v int) *vpa_types.VerticalPodAutoscaler {
	name := fmt.Sprintf("vpa-%d", v)
	mode := vpa_types.UpdateModeRecreate
	object := &vpa_types.VerticalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace(v), Generation: 1},
		Spec: vpa_types.VerticalPodAutoscalerSpec{
			TargetRef:    &autoscaling.CrossVersionObjectReference{Kind: "Deployment", Name: name, APIVersion: "apps/v1"},
			UpdatePolicy: &vpa_types.PodUpdatePolicy{UpdateMode: &mode},
		},
	}
	if err := cluster.AddOrUpdateVpa(object, labels.SelectorFromSet(labels.Set{"app": name})); err != nil {
		panic(err)
	}
	return object
}

func makePods(cluster model.ClusterState, v int, ids []model.PodID) {
	rollOut(cluster, v, ids, 0)
}

// Pods of a new template take the place of those before.
func rollOut(cluster model.ClusterState, v int, ids []model.PodID, rollout int) {
	hash := fmt.Sprintf("5d9c7b8f%02x", rollout)
	set := labels.Set{"app": fmt.Sprintf("vpa-%d", v), "pod-template-hash": hash}
	for p := v * podsPerVpa; p < (v+1)*podsPerVpa; p++ {
		if rollout > 0 {
			cluster.DeletePod(ids[p])
		}
		ids[p] = model.PodID{Namespace: namespace(v), PodName: fmt.Sprintf("vpa-%d-%s-%05x", v, hash, p)}
		cluster.AddOrUpdatePod(ids[p], set, corev1.PodRunning)
		for _, name := range containerNames {
			if err := cluster.AddOrUpdateContainer(model.ContainerID{PodID: ids[p], ContainerName: name}, nil); err != nil {
				panic(err)
			}
		}
	}
}

func feedRound(cluster model.ClusterState, ids []model.PodID, round int, now time.Time) {
	for p, id := range ids {
		for c, name := range containerNames {
			r := mix(uint64(seed + round*pods*containers + p*containers + c))
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
	}
}

func recommendAll(cluster model.ClusterState, recommender logic.PodResourceRecommender, capping routines.RecommendationPostProcessor,
	objects []*vpa_types.VerticalPodAutoscaler) {
	format := logic.RecommendationFormat{RoundCPUMillicores: 1, RoundMemoryBytes: 1}
	for _, object := range objects {
		vpa := cluster.VPAs()[model.VpaID{Namespace: object.Namespace, VpaName: object.Name}]
		resources := recommender.GetRecommendedPodResources(routines.GetContainerNameToAggregateStateMap(vpa))
		list := capping.Process(object, logic.MapToListOfRecommendedContainerResources(resources, format))
		vpa.UpdateRecommendation(list)
		vpa.UpdateConditions(vpa.PodCount > 0)
		_ = vpa.AsStatus()
	}
}

// The figure of that name among the lines of our own bench.
func ours(path, name string) float64 {
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		fields := strings.Fields(scanner.Text())
		if len(fields) >= 3 && fields[0] == "bench" && fields[1] == name {
			value, _ := strconv.ParseFloat(fields[2], 64)
			return value
		}
	}
	return 0
}

func main() {
	path := flag.String("ours", "", "file with the lines of bench_vertical")
	flag.Parse()
	day := 24 * time.Hour
	model.InitializeAggregationsConfig(model.NewAggregationsConfig(day, 8, day, day, 1.2, 100*1024*1024))
	cluster := model.NewClusterState(time.Hour)
	ids := make([]model.PodID, pods)
	objects := make([]*vpa_types.VerticalPodAutoscaler, vpas)
	for v := range objects {
		objects[v] = makeVpa(cluster, v)
	}
	before := liveMib()
	for v := range objects {
		makePods(cluster, v, ids)
	}
	now := time.Unix(1772323200, 0).UTC()
	round := 0
	for ; round < warmRounds; round++ {
		feedRound(cluster, ids, round, now)
		now = now.Add(time.Hour)
	}
	memory := (liveMib() - before) * scale
	start := cpuSeconds()
	for i := 0; i < rounds; i++ {
		feedRound(cluster, ids, round, now)
		round++
		now = now.Add(time.Minute)
	}
	feed := (cpuSeconds() - start) / rounds * scale
	recommender := logic.CreatePodResourceRecommender(logic.RecommendationConfig{
		SafetyMarginFraction: 0.15, PodMinCPUMillicores: 25, PodMinMemoryMb: 250,
		TargetCPUPercentile: 0.9, LowerBoundCPUPercentile: 0.5, UpperBoundCPUPercentile: 0.95, ConfidenceIntervalCPU: day,
		TargetMemoryPercentile: 0.9, LowerBoundMemoryPercentile: 0.5, UpperBoundMemoryPercentile: 0.95, ConfidenceIntervalMemory: day,
	})
	capping := routines.NewCappingRecommendationProcessor(nil)
	start = cpuSeconds()
	for i := 0; i < rounds; i++ {
		recommendAll(cluster, recommender, capping, objects)
	}
	recommend := (cpuSeconds() - start) / rounds * scale
	fmt.Printf("bench vertical.peer.memory %.1f MiB\n", memory)
	fmt.Printf("bench vertical.peer.feed.cpu %.4f s\n", feed)
	fmt.Printf("bench vertical.peer.recommend.cpu %.4f s\n", recommend)
	// A rollout a day for a week: upstream keeps an aggregate for every template of the last eight days, ours does not grow
	// (vertical.rollout.growth).
	for rollout := 1; rollout < 8; rollout++ {
		for v := range objects {
			rollOut(cluster, v, ids, rollout)
		}
		feedRound(cluster, ids, round, now)
		round++
		now = now.Add(day)
	}
	rolled := (liveMib() - before) * scale
	fmt.Printf("bench vertical.peer.memory_rollouts %.1f MiB\n", rolled)
	if mine := ours(*path, "vertical.memory"); mine > 0 {
		fmt.Printf("bench vertical.vs_upstream.memory_rollouts %.1f x\n", rolled/mine)
	}
	runtime.KeepAlive(ids)
	runtime.KeepAlive(objects)
	runtime.KeepAlive(cluster)
	if mine := ours(*path, "vertical.feed.cpu") + ours(*path, "vertical.recommend.cpu"); mine > 0 {
		fmt.Printf("bench vertical.vs_upstream.cpu %.1f x\n", (feed+recommend)/mine)
	}
	if mine := ours(*path, "vertical.memory"); mine > 0 {
		fmt.Printf("bench vertical.vs_upstream.memory %.1f x\n", memory/mine)
	}
}
