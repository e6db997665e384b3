package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"
)

// Objects in protobuf beside the JSON of the same typed object, as NAME.pb and NAME.json: what a decoder is tested with.
// The JSON is that of the object after a way through protobuf, which does not tell an empty list from none.

//go:embed samples.yaml
var written string

func kindType(apiVersion, name string) reflect.Type {
	for _, k := range kinds {
		if k.name == name && (k.apiVersion == apiVersion || name == "DeleteOptions") {
			return reflect.TypeOf(k.object)
		}
	}
	log.Fatalf("no kind %s %s", apiVersion, name)
	return nil
}

func writePair(folder, name, apiVersion, kind string, object runtime.Object) {
	object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	var body bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(object, &body); err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(body.Bytes()[4:]); err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	again := reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	if err := again.(interface{ Unmarshal([]byte) error }).Unmarshal(envelope.Raw); err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	again.GetObjectKind().SetGroupVersionKind(envelope.GroupVersionKind())
	text, err := json.Marshal(again)
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	for suffix, content := range map[string][]byte{".pb": body.Bytes(), ".json": append(text, '\n')} {
		if err := os.WriteFile(filepath.Join(folder, name+suffix), content, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

func makeFolder(folder string) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		log.Fatal(err)
	}
}

// The objects of samples.yaml, each named by its kind and a number where there are several.
func writeSamples(folder string) {
	makeFolder(folder)
	count := map[string]int{}
	for _, text := range strings.Split(written, "\n---\n") {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
			log.Fatal(err)
		}
		object := reflect.New(kindType(meta.APIVersion, meta.Kind)).Interface().(runtime.Object)
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			log.Fatalf("%s: %v", meta.Kind, err)
		}
		name := strings.ToLower(meta.Kind)
		count[name]++
		if count[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, count[name])
		}
		writePair(folder, name, meta.APIVersion, meta.Kind, object)
	}
}

var documents = []string{`null`, `true`, `-1.5e3`, `"text"`, `[]`, `{}`, `{"a":{"b":[1,"x",null]},"c":"\u00e9\n"}`,
	` {"kind":"Pod","f:metadata":{"f:labels":{}}} `}

func anyDocument(c randfill.Continue) []byte {
	return []byte(documents[c.Intn(len(documents))])
}

// Values that randfill would fill past their meaning.
var fillers = []any{
	func(q *resource.Quantity, c randfill.Continue) {
		formats := []resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent}
		format := formats[c.Intn(len(formats))]
		switch c.Intn(5) {
		case 0:
			*q = resource.Quantity{}
		case 1:
			*q = *resource.NewMilliQuantity(c.Int63()-c.Int63(), format)
		case 2:
			*q = *resource.NewQuantity(int64(c.Intn(4096))<<(10*c.Intn(5)), format)
		case 3:
			*q = *resource.NewScaledQuantity(int64(c.Intn(100000)), resource.Scale(c.Intn(28)-9))
		default:
			*q = *resource.NewQuantity(int64(c.Intn(100000)), format)
		}
	},
	func(v *intstr.IntOrString, c randfill.Continue) {
		if c.Bool() {
			*v = intstr.FromInt32(int32(c.Uint32()))
		} else {
			*v = intstr.FromString(c.String(10))
		}
	},
	func(t *metav1.Time, c randfill.Continue) {
		if c.Intn(4) > 0 {
			*t = metav1.Unix(c.Int63n(253402300799+62135596800)-62135596800, 0)
		}
	},
	func(t *metav1.MicroTime, c randfill.Continue) {
		if c.Intn(4) > 0 {
			*t = metav1.MicroTime{Time: time.Unix(c.Int63n(253402300799+62135596800)-62135596800, c.Int63n(1e9))}
		}
	},
	func(f *float64, c randfill.Continue) {
		for *f = math.Float64frombits(c.Uint64()); math.IsNaN(*f) || math.IsInf(*f, 0); {
			*f = math.Float64frombits(c.Uint64())
		}
	},
	func(r *runtime.RawExtension, c randfill.Continue) {
		if c.Intn(4) > 0 {
			r.Raw = anyDocument(c)
		}
	},
	func(f *metav1.FieldsV1, c randfill.Continue) {
		f.SetRawBytes([]byte(documents[len(documents)-1-c.Intn(3)]))
	},
	func(j *apiextensionsv1.JSON, c randfill.Continue) {
		if c.Intn(4) > 0 {
			j.Raw = anyDocument(c)
		}
	},
}

// Random objects, `count` of each kind. Some are full, others nearly empty.
func writeRandom(folder string, count int, seed int64) {
	makeFolder(folder)
	for i, k := range kinds {
		for n := range count {
			filler := randfill.NewWithSeed(seed+int64(i*count+n)).Funcs(fillers...).MaxDepth(4+n%16).
				NumElements(0, 1+n%4).NilChance([]float64{0.3, 0.05, 0.6, 0.9}[n%4])
			object := reflect.New(reflect.TypeOf(k.object)).Interface().(runtime.Object)
			filler.Fill(object)
			version := strings.ReplaceAll(k.apiVersion, "/", "-")
			writePair(folder, fmt.Sprintf("%s-%s-%04d", version, k.name, n), k.apiVersion, k.name, object)
		}
	}
}
