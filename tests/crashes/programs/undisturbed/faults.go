// Go's own use of SIGSEGV, with the C library: a nil pointer is a panic that can be caught, signals are a channel.
package main

// #include <stdlib.h>
import "C"

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

type box struct{ value int }

func read(b *box) (result string) {
	defer func() {
		if problem := recover(); problem != nil {
			result = fmt.Sprint("recovered: ", problem)
		}
	}()
	return fmt.Sprint(b.value)
}

func main() {
	C.free(C.malloc(10))
	for i := 0; i < 3; i++ {
		fmt.Println(read(nil))
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println("got", <-signals)
	fmt.Println("child:", exec.Command("sh", "-c", "kill -SEGV $$").Run())
	if len(os.Args) > 1 && os.Args[1] == "crash" {
		var nothing *box
		fmt.Println(nothing.value)
	}
	os.Exit(6)
}
