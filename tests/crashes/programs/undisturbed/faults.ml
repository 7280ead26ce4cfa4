(* OCaml turns the overflow of its stack into an exception. *)
let rec deep n = 1 + deep (n + 1)

let () =
  (try ignore (deep 0) with Stack_overflow -> print_endline "deep recursion caught");
  Sys.set_signal Sys.sigusr1 (Sys.Signal_handle (fun _ -> print_endline "usr1"));
  Unix.kill (Unix.getpid ()) Sys.sigusr1;
  exit 3
