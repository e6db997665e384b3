package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// What is promised: this many times less than upstream.
const timesLess = 10

// Figures by name: those of our own bench, read from its lines, and those measured here.
type figures struct {
	values map[string]float64
}

func readFigures(path string) *figures {
	figures := &figures{values: map[string]float64{}}
	file, err := os.Open(path)
	if err != nil {
		return figures
	}
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		fields := strings.Fields(scanner.Text())
		if len(fields) >= 3 && fields[0] == "bench" {
			figures.values[fields[1]], _ = strconv.ParseFloat(fields[2], 64)
		}
	}
	return figures
}

func (f *figures) print(name string, value float64, unit string) {
	f.values[name] = value
	fmt.Printf("bench %s %.4g %s\n", name, value, unit)
}

// Prints how many times less ours is; false when the promise is broken. Without our figures there is nothing to compare.
func (f *figures) ratio(name string, theirs, ours float64, isPromised bool) bool {
	if ours <= 0 {
		return true
	}
	f.print(name, theirs/ours, "x")
	if isPromised && theirs/ours < timesLess {
		fmt.Printf("broken: %s is below %d\n", name, timesLess)
		return false
	}
	return true
}

func (f *figures) compare() bool {
	v := f.values
	isKept := f.ratio("vertical.vs_upstream.cpu", v["vertical.peer.feed.cpu"]+v["vertical.peer.recommend.cpu"],
		v["vertical.feed.cpu"]+v["vertical.recommend.cpu"], true)
	isKept = f.ratio("vertical.vs_upstream.memory", v["vertical.peer.memory"], v["vertical.memory"], true) && isKept
	f.ratio("vertical.vs_upstream.memory_live", v["vertical.peer.memory_live"], v["vertical.memory"], false)
	return f.ratio("vertical.vs_upstream.memory_rollouts", v["vertical.peer.memory_rollouts"], v["vertical.memory_rollouts"],
		true) && isKept
}
