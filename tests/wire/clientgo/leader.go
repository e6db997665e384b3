package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 200 * time.Millisecond
)

// One candidate: its name is sent when it leads, and again with a minus when it stops.
func candidate(ctx context.Context, b *bed, ns, name string, isReleasing bool, told chan<- string) {
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Name: "lock", Namespace: ns}, Client: b.proto.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: name}}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: isReleasing,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { told <- name },
			OnStoppedLeading: func() { told <- "-" + name }}})
}

func hear(told <-chan string, patience time.Duration, wanted ...string) error {
	for _, name := range wanted {
		select {
		case got := <-told:
			if got != name {
				return fmt.Errorf("heard %q, expected %q", got, name)
			}
		case <-time.After(patience):
			return fmt.Errorf("heard nothing of %q in %v", name, patience)
		}
	}
	return nil
}

// The first leads, the second waits; a lease that is released goes over at once, one that is abandoned after its duration.
func testLeaderElection(ctx context.Context, b *bed, ns string) error {
	told := make(chan string, 16)
	first, stopFirst := context.WithCancel(ctx)
	defer stopFirst()
	go candidate(first, b, ns, "one", true, told)
	if err := hear(told, 5*time.Second, "one"); err != nil {
		return err
	}
	second, stopSecond := context.WithCancel(ctx)
	defer stopSecond()
	go candidate(second, b, ns, "two", false, told)
	time.Sleep(leaseDuration) // a lease that is not renewed would go over now
	if len(told) > 0 {
		return fmt.Errorf("heard %q while 'one' leads", <-told)
	}
	stopFirst()
	if err := hear(told, leaseDuration/2, "-one", "two"); err != nil {
		return fmt.Errorf("released: %w", err)
	}
	go candidate(ctx, b, ns, "three", true, told)
	time.Sleep(retryPeriod)
	abandoned := time.Now()
	stopSecond()
	if err := hear(told, 2*leaseDuration, "-two", "three"); err != nil {
		return fmt.Errorf("abandoned: %w", err)
	}
	if took := time.Since(abandoned); took < leaseDuration/2 {
		return fmt.Errorf("an abandoned lease went over after %v", took)
	}
	lease, err := b.proto.CoordinationV1().Leases(ns).Get(ctx, "lock", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if *lease.Spec.HolderIdentity != "three" || *lease.Spec.LeaseTransitions != 2 {
		return fmt.Errorf("holder %s after %d transitions", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)
	}
	return nil
}

func newListWatch(c *kubernetes.Clientset, resource, ns, selector string) *cache.ListWatch {
	return cache.NewListWatchFromClient(c.CoreV1().RESTClient(), resource, ns, fields.ParseSelectorOrDie(selector))
}

func isAdded(event watch.Event) (bool, error) { return event.Type == watch.Added, nil }
