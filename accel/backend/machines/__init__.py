"""Several machines: one program, whose arrays are divided among the devices of several processes.

All processes are started alike. Rank 0 runs the program. It decides which path runs, when a program is ready and which
results are compared, and tells the others. The other ranks never reach the program's first line: they hold its compiled
programs, and run them with rank 0 when told to. So only rank 0 has output and files, and no rank waits in a collective
while another runs NumPy. JAX finds the processes, compiles and divides the programs, and exchanges data at the borders
between devices.

joining     how a process learns its rank, and where the others wait
launchers   the variables by which a launcher tells each process its rank
crew        rank 0's connections to the others: orders, answers, and the loss of a rank
common      a program that all ranks run together, as seen by rank 0
serving     the main loop of the other ranks
pieces      arrays cut for the devices of a rank, and put together again
chatter     output that JAX's libraries print meanwhile
"""
