// What programs written with client-go do, against the cluster of $KUBECONFIG: informers of three kinds while 2,000 objects
// churn, leader election, server-side apply, evictions, events. Prints lines "ok NAME" and "FAIL NAME"; exits 1 after a failure.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// Everything a test needs: typed clients of both content types, and those without types.
type bed struct {
	json     *kubernetes.Clientset
	proto    *kubernetes.Clientset
	dynamic  dynamic.Interface
	metadata metadata.Interface
	config   *rest.Config
	seconds  time.Duration
}

type test struct {
	name string
	run  func(ctx context.Context, b *bed, namespace string) error
}

func newBed(kubeconfig string, seconds time.Duration) (*bed, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	b := &bed{config: config, seconds: seconds}
	if b.json, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	withProto := rest.CopyConfig(config)
	withProto.ContentType = protobuf
	withProto.AcceptContentTypes = protobuf + ",application/json"
	if b.proto, err = kubernetes.NewForConfig(withProto); err != nil {
		return nil, err
	}
	if b.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	b.metadata, err = metadata.NewForConfig(config)
	return b, err
}

func (b *bed) withNamespace(ctx context.Context, name string, run func(context.Context, *bed, string) error) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clientgo-" + name}}
	if _, err := b.proto.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("namespace: %w", err)
	}
	defer b.proto.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, metav1.DeleteOptions{})
	return run(ctx, b, namespace.Name)
}

var baskets = schema.GroupVersionResource{Group: "shop.example.com", Version: "v1", Resource: "baskets"}
var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// The custom kind that several tests use.
func (b *bed) define(ctx context.Context) error {
	type object = map[string]any
	definition := object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": baskets.Resource + "." + baskets.Group},
		"spec": object{
			"group": baskets.Group, "scope": "Namespaced",
			"names": object{"plural": "baskets", "singular": "basket", "kind": "Basket"},
			"versions": []any{object{
				"name": "v1", "served": true, "storage": true,
				"subresources": object{"status": object{},
					"scale": object{"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
				"schema": object{"openAPIV3Schema": object{"type": "object", "properties": object{
					"spec": object{"type": "object", "properties": object{
						"size":   object{"type": "integer", "minimum": int64(1)},
						"colour": object{"type": "string", "default": "red"}}},
					"status": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}}}
	api := b.dynamic.Resource(definitions)
	if _, err := api.Create(ctx, &unstructured.Unstructured{Object: definition}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return eventually(ctx, 10*time.Second, func() error {
		_, err := b.dynamic.Resource(baskets).Namespace("default").List(ctx, metav1.ListOptions{})
		return err
	})
}

func basket(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "shop.example.com/v1", "kind": "Basket",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"size": size}}}
}

// No scheduler shall touch it: the tests want to be the only ones who write.
func pod(name string, labels map[string]string) *corev1.Pod {
	zero := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{SchedulerName: "nobody", TerminationGracePeriodSeconds: &zero,
			Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
}

func eventually(ctx context.Context, patience time.Duration, try func() error) error {
	end := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("not within %v: %w", patience, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func main() {
	seconds := flag.Int("seconds", 60, "how long objects churn")
	only := flag.String("only", "", "the one test to run")
	flag.Parse()
	b, err := newBed(os.Getenv("KUBECONFIG"), time.Duration(*seconds)*time.Second)
	if err == nil {
		err = b.define(context.Background())
	}
	if err != nil {
		fmt.Println("FAIL start:", err)
		os.Exit(1)
	}
	status := 0
	for _, t := range tests {
		if *only != "" && *only != t.name {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), b.seconds+2*time.Minute)
		if err := b.withNamespace(ctx, t.name, t.run); err != nil {
			fmt.Printf("FAIL %s\n    %v\n", t.name, err)
			status = 1
		} else {
			fmt.Println("ok", t.name)
		}
		cancel()
	}
	os.Exit(status)
}
