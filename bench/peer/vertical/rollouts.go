package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
	controllerfetcher "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/target/controller_fetcher"
)

const (
	rolloutSeconds = 30
	rolloutDays    = 8
	rolloutPods    = 5
)

// Every controller is its own topmost one and is there.
type everyController struct{}

func (everyController) FindTopMostWellKnownOrScalable(_ context.Context,
	controller *controllerfetcher.ControllerKeyWithAPIVersion) (*controllerfetcher.ControllerKeyWithAPIVersion, error) {
	return controller, nil
}

func rolloutPod(number, p int) model.PodID {
	return model.PodID{Namespace: namespace(0), PodName: fmt.Sprintf("vpa-0-%010x-%d", number, p)}
}

// Eight simulated days with a rollout every 30 seconds on one VPA, collected every hour as upstream does: the live heap
// at the end of each day. Pods that ended are deleted at once. The figures are what the process cannot do without, so the
// collector is asked to run before each is read.
func runRollouts(figures *figures) {
	before := liveMib()
	cluster := model.NewClusterState(time.Hour)
	object := makeVpa(0)
	setVpa(cluster, object)
	perDay := 24 * 3600 / rolloutSeconds
	days := make([]float64, rolloutDays)
	for number := 1; number <= rolloutDays*perDay; number++ {
		now := start.Add(time.Duration(number) * rolloutSeconds * time.Second)
		set := labels.Set{"app": object.Name, "pod-template-hash": fmt.Sprintf("%010x", number)}
		for p := 0; p < rolloutPods; p++ {
			cluster.DeletePod(rolloutPod(number-1, p))
			addPod(cluster, rolloutPod(number, p), set)
			for c, name := range containerNames {
				r := mix(uint64(seed + (number*rolloutPods+p)*containers + c))
				addSamples(cluster, rolloutPod(number, p), name, r, now)
			}
		}
		cluster.RateLimitedGarbageCollectAggregateCollectionStates(context.Background(), now, everyController{})
		if number%perDay == 0 {
			today := number/perDay - 1
			days[today] = liveMib() - before
			figures.print(fmt.Sprintf("vertical.peer.rollout.day%d", today+1), days[today], "MiB")
		}
	}
	figures.print("vertical.peer.rollout.growth", 100*(days[rolloutDays-1]-days[0])/days[0], "%")
}
