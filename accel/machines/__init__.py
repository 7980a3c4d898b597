"""Several machines: one program, whose arrays are divided among the devices of several processes.

All processes are started alike. Rank 0 runs the program, decides which path runs, when a program is ready and what is
compared, and tells the others. These never reach the program's first line: they hold its compiled programs, and run
them with rank 0 when told to. So only rank 0 has output and files, and none waits in a collective while another runs
NumPy. JAX finds the processes, compiles and divides the programs, and moves what is at the borders between them.

joining     how a process learns its rank, and where the others wait
launchers   the variables by which what starts the processes tells each its rank
crew        rank 0's view of the others: telling them, hearing from them, and what happens if one is gone
common      a program that all ranks run together, as rank 0 has it
serving     what the other ranks do
pieces      arrays cut for the devices of a rank, and put together again
chatter     what JAX's libraries print meanwhile
"""
