package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	apps "k8s.io/client-go/applyconfigurations/apps/v1"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

var tests = []test{
	{"protobuf", testProtobuf},
	{"apply", testApply},
	{"scale", testScale},
	{"dynamic", testDynamic},
	{"metadata", testMetadata},
	{"pages", testPages},
	{"conflict", testConflict},
	{"eviction", testEviction},
	{"resize", testResize},
	{"events", testEvents},
	{"watch-until", testWatchUntil},
	{"discovery", testDiscovery},
	{"leader-election", testLeaderElection},
	{"churn", testChurn},
}

var once = metav1.CreateOptions{}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "app", Image: "app:1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
					Ports: []corev1.ContainerPort{{ContainerPort: 8080, Name: "http"}},
					ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
						HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}}},
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}},
				}}}}}}
}

func same(what string, a, b any) error {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	one, _ := json.Marshal(a)
	two, _ := json.Marshal(b)
	return fmt.Errorf("%s differ:\n    %s\n    %s", what, one, two)
}

// A body sent as protobuf is stored as the same body sent as JSON would be.
func testProtobuf(ctx context.Context, b *bed, ns string) error {
	made, err := b.proto.AppsV1().Deployments(ns).Create(ctx, deployment("one", 0), once)
	if err != nil {
		return err
	}
	twin, err := b.json.AppsV1().Deployments(ns).Create(ctx, deployment("two", 0), once)
	if err != nil {
		return err
	}
	renamed, _ := json.Marshal(made.Spec)
	var spec appsv1.DeploymentSpec
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(renamed), `"one"`, `"two"`)), &spec); err != nil {
		return err
	}
	if err := same("specs", spec, twin.Spec); err != nil {
		return err
	}
	read, err := b.json.AppsV1().Deployments(ns).Get(ctx, "one", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := same("templates", read.Spec.Template, made.Spec.Template); err != nil {
		return err
	}
	// Kinds with unions, bytes, quantities and integers-or-texts.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bytes"}, Data: map[string][]byte{"k": {0, 255, 10}}}
	if _, err := b.proto.CoreV1().Secrets(ns).Create(ctx, secret, once); err != nil {
		return err
	}
	readSecret, err := b.json.CoreV1().Secrets(ns).Get(ctx, "bytes", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := same("secrets", readSecret.Data, secret.Data); err != nil {
		return err
	}
	percent := int32(60)
	value := resource.MustParse("1500m")
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "one"},
			MaxReplicas:    4,
			Metrics: []autoscalingv2.MetricSpec{
				{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
					Name: "cpu", Target: autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: &percent}}},
				{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
					Metric: autoscalingv2.MetricIdentifier{Name: "queue"},
					Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: &value}}}}}}
	madeHPA, err := b.proto.AutoscalingV2().HorizontalPodAutoscalers(ns).Create(ctx, hpa, once)
	if err != nil {
		return err
	}
	if err := same("metrics", madeHPA.Spec.Metrics, hpa.Spec.Metrics); err != nil {
		return err
	}
	madeHPA.Status = autoscalingv2.HorizontalPodAutoscalerStatus{DesiredReplicas: 2,
		CurrentMetrics: []autoscalingv2.MetricStatus{{Type: "Resource", Resource: &autoscalingv2.ResourceMetricStatus{
			Name: "cpu", Current: autoscalingv2.MetricValueStatus{AverageUtilization: &percent}}}}}
	status, err := b.proto.AutoscalingV2().HorizontalPodAutoscalers(ns).UpdateStatus(ctx, madeHPA, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	return same("status", status.Status.CurrentMetrics, madeHPA.Status.CurrentMetrics)
}

func testApply(ctx context.Context, b *bed, ns string) error {
	api := b.proto.AppsV1().Deployments(ns)
	wanted := func(replicas int32) *apps.DeploymentApplyConfiguration {
		return apps.Deployment("web", ns).WithSpec(apps.DeploymentSpec().WithReplicas(replicas).
			WithSelector(meta.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
			WithTemplate(core.PodTemplateSpec().WithLabels(map[string]string{"app": "web"}).
				WithSpec(core.PodSpec().WithContainers(core.Container().WithName("app").WithImage("app:1").
					WithEnv(core.EnvVar().WithName("A").WithValue("1"), core.EnvVar().WithName("B").WithValue("2"))))))
	}
	made, err := api.Apply(ctx, wanted(0), metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	if *made.Spec.Replicas != 0 {
		return fmt.Errorf("replicas %d", *made.Spec.Replicas)
	}
	_, err = api.Apply(ctx, wanted(1), metav1.ApplyOptions{FieldManager: "two"})
	if !apierrors.IsConflict(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return fmt.Errorf("expected a conflict of field managers, not %v", err)
	}
	if _, err = api.Apply(ctx, wanted(1), metav1.ApplyOptions{FieldManager: "two", Force: true}); err != nil {
		return err
	}
	// What "one" owns can be extracted, and leaving it out of the next apply gives it up or removes it.
	live, err := api.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	owned, err := apps.ExtractDeployment(live, "one")
	if err != nil {
		return err
	}
	if owned.Spec.Replicas != nil || len(owned.Spec.Template.Spec.Containers[0].Env) != 2 {
		return fmt.Errorf("'one' owns replicas %v and %d variables", owned.Spec.Replicas, len(owned.Spec.Template.Spec.Containers[0].Env))
	}
	shorter := wanted(1)
	shorter.Spec.Template.Spec.Containers[0].Env = shorter.Spec.Template.Spec.Containers[0].Env[:1]
	if _, err = api.Apply(ctx, shorter, metav1.ApplyOptions{FieldManager: "two", Force: true}); err != nil {
		return err
	}
	shorter.Spec.Replicas = nil
	last, err := api.Apply(ctx, shorter, metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	if n := len(last.Spec.Template.Spec.Containers[0].Env); n != 1 || *last.Spec.Replicas != 1 {
		return fmt.Errorf("after both let go: %d variables, %d replicas", n, *last.Spec.Replicas)
	}
	_, err = b.proto.CoreV1().ConfigMaps(ns).Apply(ctx, core.ConfigMap("c", ns).WithData(map[string]string{"a": "1"}),
		metav1.ApplyOptions{FieldManager: "one", DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	if _, err = b.proto.CoreV1().ConfigMaps(ns).Get(ctx, "c", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("a dry run left %v", err)
	}
	return nil
}

func testScale(ctx context.Context, b *bed, ns string) error {
	api := b.proto.AppsV1().Deployments(ns)
	if _, err := api.Create(ctx, deployment("web", 1), once); err != nil {
		return err
	}
	scale, err := api.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if scale.Status.Selector != "app=web" {
		return fmt.Errorf("selector %q", scale.Status.Selector)
	}
	// The deployment's own controller writes too, so the first version read may be an old one by now.
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if scale, err = api.GetScale(ctx, "web", metav1.GetOptions{}); err != nil {
			return err
		}
		scale.Spec.Replicas = 3
		scale, err = api.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	stale := scale.DeepCopy()
	stale.ResourceVersion = "1"
	if _, err = api.UpdateScale(ctx, "web", stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("an old version of the scale: %v", err)
	}
	if scale.Spec.Replicas != 3 {
		return fmt.Errorf("replicas %d", scale.Spec.Replicas)
	}
	// A custom resource is scaled by the same call.
	if _, err = b.dynamic.Resource(baskets).Namespace(ns).Create(ctx, basket("big", 2), once); err != nil {
		return err
	}
	custom, err := b.dynamic.Resource(baskets).Namespace(ns).Get(ctx, "big", metav1.GetOptions{}, "scale")
	if err != nil {
		return err
	}
	text, _ := custom.MarshalJSON()
	var asScale autoscalingv1.Scale
	if err = json.Unmarshal(text, &asScale); err != nil {
		return err
	}
	if asScale.Spec.Replicas != 2 {
		return fmt.Errorf("a basket's scale: %s", text)
	}
	return nil
}

func testDynamic(ctx context.Context, b *bed, ns string) error {
	api := b.dynamic.Resource(baskets).Namespace(ns)
	made, err := api.Create(ctx, basket("big", 2), once)
	if err != nil {
		return err
	}
	if spec := made.Object["spec"].(map[string]any); spec["colour"] != "red" || spec["size"] != int64(2) {
		return fmt.Errorf("spec %v", spec)
	}
	if _, err = api.Create(ctx, basket("none", 0), once); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a basket of no size: %v", err)
	}
	made.Object["status"] = map[string]any{"size": int64(2)}
	if made, err = api.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	patched, err := api.Patch(ctx, "big", types.MergePatchType, []byte(`{"spec":{"colour":null,"size":7}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	if spec := patched.Object["spec"].(map[string]any); spec["colour"] != "red" || patched.GetGeneration() != 2 {
		return fmt.Errorf("after the patch: %v, generation %d", spec, patched.GetGeneration())
	}
	applied, err := api.Apply(ctx, "small", basket("small", 1), metav1.ApplyOptions{FieldManager: "clientgo"})
	if err != nil {
		return err
	}
	if fields := applied.GetManagedFields(); len(fields) != 1 || fields[0].Manager != "clientgo" {
		return fmt.Errorf("managed fields %v", fields)
	}
	if err = api.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	left, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(left.Items) != 0 || left.GetKind() != "BasketList" {
		return fmt.Errorf("%d left, kind %s", len(left.Items), left.GetKind())
	}
	return nil
}

func testMetadata(ctx context.Context, b *bed, ns string) error {
	if _, err := b.proto.CoreV1().Pods(ns).Create(ctx, pod("one", map[string]string{"a": "b"}), once); err != nil {
		return err
	}
	api := b.metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(ns)
	list, err := api.List(ctx, metav1.ListOptions{LabelSelector: "a=b"})
	if err != nil {
		return err
	}
	if len(list.Items) != 1 || list.Items[0].Labels["a"] != "b" || list.Items[0].UID == "" {
		return fmt.Errorf("list %v", list.Items)
	}
	patch := []byte(`{"metadata":{"labels":{"a":"c"}}}`)
	patched, err := api.Patch(ctx, "one", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	if patched.Labels["a"] != "c" {
		return fmt.Errorf("labels %v", patched.Labels)
	}
	return api.Delete(ctx, "one", metav1.DeleteOptions{})
}

func testPages(ctx context.Context, b *bed, ns string) error {
	api := b.proto.CoreV1().ConfigMaps(ns)
	for i := range 30 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("page-%02d", i)}}
		if _, err := api.Create(ctx, cm, once); err != nil {
			return err
		}
	}
	options := metav1.ListOptions{Limit: 7}
	var names []string
	version := ""
	for {
		page, err := api.List(ctx, options)
		if err != nil {
			return err
		}
		if version != "" && page.ResourceVersion != version {
			return fmt.Errorf("versions %s and %s in one list", version, page.ResourceVersion)
		}
		version = page.ResourceVersion
		for _, item := range page.Items {
			if strings.HasPrefix(item.Name, "page-") {
				names = append(names, item.Name)
			}
		}
		if err := api.Delete(ctx, "page-29", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if options.Continue = page.Continue; page.Continue == "" {
			break
		}
	}
	if len(names) != 30 || names[0] != "page-00" || names[29] != "page-29" {
		return fmt.Errorf("names %v", names)
	}
	return nil
}

func testConflict(ctx context.Context, b *bed, ns string) error {
	api := b.proto.CoreV1().ConfigMaps(ns)
	cm, err := api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}, once)
	if err != nil {
		return err
	}
	tries := 0
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		tries++
		next := cm.DeepCopy()
		if tries == 1 {
			other := cm.DeepCopy()
			other.Labels = map[string]string{"by": "other"}
			if _, err := api.Update(ctx, other, metav1.UpdateOptions{}); err != nil {
				return err
			}
		} else if next, err = api.Get(ctx, cm.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		next.Data = map[string]string{"by": "me"}
		_, err := api.Update(ctx, next, metav1.UpdateOptions{})
		return err
	})
	if err != nil || tries != 2 {
		return fmt.Errorf("%d tries: %w", tries, err)
	}
	wrong := types.UID("wrong")
	err = api.Delete(ctx, cm.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("a wrong uid: %v", err)
	}
	return nil
}

func testEviction(ctx context.Context, b *bed, ns string) error {
	labels := map[string]string{"app": "web"}
	if _, err := b.proto.CoreV1().Pods(ns).Create(ctx, pod("web", labels), once); err != nil {
		return err
	}
	running := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	_, err := b.proto.CoreV1().Pods(ns).Patch(ctx, "web", types.StrategicMergePatchType, running, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	none := intstr.FromInt32(0)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	if _, err := b.proto.PolicyV1().PodDisruptionBudgets(ns).Create(ctx, budget, once); err != nil {
		return err
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns}}
	if err = b.proto.CoreV1().Pods(ns).EvictV1(ctx, eviction); !apierrors.IsTooManyRequests(err) {
		return fmt.Errorf("against the budget: %v", err)
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		return fmt.Errorf("no cause of the budget: %v", err)
	}
	if err = b.proto.PolicyV1().PodDisruptionBudgets(ns).Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err = b.proto.PolicyV1().Evictions(ns).Evict(ctx, eviction); err != nil {
		return err
	}
	return eventually(ctx, 10*time.Second, func() error {
		_, err := b.proto.CoreV1().Pods(ns).Get(ctx, "web", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the evicted pod: %v", err)
		}
		return nil
	})
}

func testResize(ctx context.Context, b *bed, ns string) error {
	wanted := pod("web", nil)
	wanted.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	made, err := b.proto.CoreV1().Pods(ns).Create(ctx, wanted, once)
	if err != nil {
		return err
	}
	running := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	made, err = b.proto.CoreV1().Pods(ns).Patch(ctx, "web", types.StrategicMergePatchType, running, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	made.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("200m")
	if _, err = b.proto.CoreV1().Pods(ns).Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("resources changed without the subresource: %v", err)
	}
	resized, err := b.proto.CoreV1().Pods(ns).UpdateResize(ctx, "web", made, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if cpu := resized.Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "200m" || resized.Generation != made.Generation+1 {
		return fmt.Errorf("cpu %s, generation %d after %d", cpu, resized.Generation, made.Generation)
	}
	return nil
}

// The recorder of controllers: what repeats becomes one event with a count.
func testEvents(ctx context.Context, b *bed, ns string) error {
	owner, err := b.proto.CoreV1().Pods(ns).Create(ctx, pod("web", nil), once)
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typed.EventSinkImpl{Interface: b.proto.CoreV1().Events(ns)})
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "clientgo"})
	for range 4 {
		recorder.Event(owner, corev1.EventTypeWarning, "Wobbled", "it wobbled")
		time.Sleep(20 * time.Millisecond)
	}
	return eventually(ctx, 10*time.Second, func() error {
		list, err := b.proto.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "reason=Wobbled,involvedObject.uid=" + string(owner.UID)})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].Count != 4 {
			return fmt.Errorf("%d events, the first: %+v", len(list.Items), list.Items)
		}
		newer, err := b.json.EventsV1().Events(ns).Get(ctx, list.Items[0].Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return same("the event in both groups", newer.Note, "it wobbled")
	})
}

func testWatchUntil(ctx context.Context, b *bed, ns string) error {
	api := b.proto.CoreV1().ConfigMaps(ns)
	go func() {
		time.Sleep(100 * time.Millisecond)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}
		_, _ = api.Create(ctx, cm, once) // a failure shows as a watch without its event
	}()
	list, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err = toolswatch.Until(ctx, list.ResourceVersion, newListWatch(b.proto, "configmaps", ns, "metadata.name=late"), isAdded)
	return err
}

func testDiscovery(ctx context.Context, b *bed, _ string) error {
	_, lists, err := b.proto.Discovery().ServerGroupsAndResources()
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			found[list.GroupVersion+" "+r.Name] = true
		}
	}
	for _, name := range []string{"v1 pods", "v1 pods/resize", "apps/v1 deployments/scale", "autoscaling/v2 horizontalpodautoscalers",
		"autoscaling.k8s.io/v1 verticalpodautoscalers", "metrics.k8s.io/v1beta1 pods", "shop.example.com/v1 baskets/status"} {
		if !found[name] {
			return fmt.Errorf("%s is not there", name)
		}
	}
	version, err := b.proto.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	if version.Minor != "36" {
		return fmt.Errorf("version %v", version)
	}
	paths, err := b.proto.Discovery().OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	if paths["apis/shop.example.com/v1"] == nil {
		return fmt.Errorf("no schema of the custom kind among %d", len(paths))
	}
	_, err = paths["apis/apps/v1"].Schema("application/json")
	return err
}
