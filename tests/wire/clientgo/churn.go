package main

import (
	"context"
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

const (
	configMaps = 1400
	pods       = 400
	customs    = 200
	writers    = 4
)

// One kind's names and how they are written; every writer owns each writers-th name, so that no call can conflict.
type churned struct {
	prefix string
	count  int
	create func(ctx context.Context, name string) error
	patch  func(ctx context.Context, name string, data []byte) error
	delete func(ctx context.Context, name string) error
}

func churnedKinds(b *bed, ns string) []churned {
	cms, ps, bs := b.proto.CoreV1().ConfigMaps(ns), b.proto.CoreV1().Pods(ns), b.dynamic.Resource(baskets).Namespace(ns)
	return []churned{
		{"configmap-", configMaps,
			func(ctx context.Context, name string) error {
				_, err := cms.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, once)
				return err
			},
			func(ctx context.Context, name string, data []byte) error {
				_, err := cms.Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
				return err
			},
			func(ctx context.Context, name string) error { return cms.Delete(ctx, name, metav1.DeleteOptions{}) }},
		{"pod-", pods,
			func(ctx context.Context, name string) error {
				_, err := ps.Create(ctx, pod(name, nil), once)
				return err
			},
			func(ctx context.Context, name string, data []byte) error {
				_, err := ps.Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
				return err
			},
			func(ctx context.Context, name string) error { return ps.Delete(ctx, name, metav1.DeleteOptions{}) }},
		{"basket-", customs,
			func(ctx context.Context, name string) error {
				_, err := bs.Create(ctx, basket(name, 1), once)
				return err
			},
			func(ctx context.Context, name string, data []byte) error {
				_, err := bs.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{})
				return err
			},
			func(ctx context.Context, name string) error { return bs.Delete(ctx, name, metav1.DeleteOptions{}) }},
	}
}

func (k *churned) step(ctx context.Context, r *rand.Rand, i int, exists map[string]bool) error {
	name := fmt.Sprintf("%s%d", k.prefix, i)
	switch {
	case !exists[name]:
		exists[name] = true
		return k.create(ctx, name)
	case r.Intn(10) < 3:
		delete(exists, name)
		return k.delete(ctx, name)
	default:
		return k.patch(ctx, name, []byte(fmt.Sprintf(`{"metadata":{"annotations":{"churn":"%d"}}}`, r.Int63())))
	}
}

func write(ctx context.Context, kinds []churned, index int, end time.Time, calls *atomic.Int64) error {
	r := rand.New(rand.NewSource(int64(index)))
	exists := map[string]bool{}
	for k := range kinds {
		for i := index; i < kinds[k].count; i += writers {
			if err := kinds[k].step(ctx, r, i, exists); err != nil {
				return err
			}
			calls.Add(1)
		}
	}
	for time.Now().Before(end) {
		n := r.Intn(configMaps + pods + customs)
		for k := range kinds {
			if n < kinds[k].count {
				if err := kinds[k].step(ctx, r, n-(n%writers)+index, exists); err != nil {
					return err
				}
				break
			}
			n -= kinds[k].count
		}
		calls.Add(1)
	}
	return nil
}

// An informer's cache beside the list that it must equal in the end.
type watched struct {
	name     string
	informer cache.SharedIndexInformer
	list     func(ctx context.Context) (map[string]string, error)
	events   atomic.Int64
}

func identity(o any) (name, value string) {
	m, err := meta.Accessor(o)
	if err != nil {
		return "", err.Error()
	}
	return m.GetName(), string(m.GetUID()) + " " + m.GetResourceVersion()
}

func (w *watched) compare(ctx context.Context) error {
	server, err := w.list(ctx)
	if err != nil {
		return err
	}
	held := map[string]string{}
	for _, o := range w.informer.GetStore().List() {
		name, value := identity(o)
		held[name] = value
	}
	for name, value := range server {
		if held[name] != value {
			return fmt.Errorf("%s: %s is %q in the cache, %q at the server", w.name, name, held[name], value)
		}
	}
	if len(held) != len(server) {
		return fmt.Errorf("%s: %d in the cache, %d at the server", w.name, len(held), len(server))
	}
	return nil
}

func (b *bed) lister(ns, resource string) func(context.Context) (map[string]string, error) {
	var api dynamic.ResourceInterface = b.dynamic.Resource(baskets).Namespace(ns)
	if resource != baskets.Resource {
		api = b.dynamic.Resource(corev1.SchemeGroupVersion.WithResource(resource)).Namespace(ns)
	}
	return func(ctx context.Context) (map[string]string, error) {
		list, err := api.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		found := map[string]string{}
		for i := range list.Items {
			name, value := identity(&list.Items[i])
			found[name] = value
		}
		return found, nil
	}
}

// Shared informers of typed clients (protobuf), dynamic ones and metadata ones, started in the middle of the first creates.
func startInformers(ctx context.Context, b *bed, ns string) []*watched {
	podResource := corev1.SchemeGroupVersion.WithResource("pods")
	typed := informers.NewSharedInformerFactoryWithOptions(b.proto, 0, informers.WithNamespace(ns))
	untyped := dynamicinformer.NewFilteredDynamicSharedInformerFactory(b.dynamic, 0, ns, nil)
	partial := metadatainformer.NewFilteredSharedInformerFactory(b.metadata, 0, ns, nil)
	all := []*watched{
		{name: "typed configmaps", informer: typed.Core().V1().ConfigMaps().Informer(), list: b.lister(ns, "configmaps")},
		{name: "typed pods", informer: typed.Core().V1().Pods().Informer(), list: b.lister(ns, "pods")},
		{name: "dynamic baskets", informer: untyped.ForResource(baskets).Informer(), list: b.lister(ns, "baskets")},
		{name: "dynamic pods", informer: untyped.ForResource(podResource).Informer(), list: b.lister(ns, "pods")},
		{name: "metadata pods", informer: partial.ForResource(podResource).Informer(), list: b.lister(ns, "pods")},
	}
	for _, w := range all {
		count := func(any) { w.events.Add(1) }
		// Adding to an informer that has not started cannot fail.
		_, _ = w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: count, UpdateFunc: func(_, o any) { count(o) }, DeleteFunc: count})
	}
	typed.Start(ctx.Done())
	untyped.Start(ctx.Done())
	partial.Start(ctx.Done())
	return all
}

func testChurn(ctx context.Context, b *bed, ns string) error {
	var calls atomic.Int64
	var group sync.WaitGroup
	failures := make(chan error, writers)
	end := time.Now().Add(b.seconds)
	kinds := churnedKinds(b, ns)
	for i := range writers {
		group.Go(func() {
			if err := write(ctx, kinds, i, end, &calls); err != nil {
				failures <- err
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	all := startInformers(ctx, b, ns)
	group.Wait()
	select {
	case err := <-failures:
		return fmt.Errorf("a writer: %w", err)
	default:
	}
	for _, w := range all {
		if err := eventually(ctx, 30*time.Second, func() error { return w.compare(ctx) }); err != nil {
			return err
		}
		fmt.Printf("    %s: %d objects, %d events\n", w.name, len(w.informer.GetStore().List()), w.events.Load())
	}
	fmt.Printf("    %d calls in %v\n", calls.Load(), b.seconds)
	return nil
}
