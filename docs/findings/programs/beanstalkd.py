"""Writer and checker for beanstalkd: `w DIR ACK` puts jobs, `c DIR` starts a server on DIR and takes them."""
import os, socket, subprocess, sys, time

mode, directory = sys.argv[1:3]
length = int(os.environ.get("LENGTH", 300))
path = "/tmp/beanstalkd-%d.sock" % os.getpid()
server = subprocess.Popen(["beanstalkd", "-b", directory, "-f", "0", "-l", "unix:" + path], stdout=2)
client = socket.socket(socket.AF_UNIX)
while True:
    try:
        client.connect(path)
        break
    except OSError:
        if server.poll() is not None:
            sys.exit("beanstalkd ended with %d" % server.returncode)
        time.sleep(0.003)
os.unlink(path)
answers = client.makefile("rb")

def ask(request):
    client.sendall(request)
    return answers.readline() or sys.exit("beanstalkd closed the connection")

def body(number):
    return (b"%06d." % number) * (length // 7)

if mode == "w":
    ack = os.open(sys.argv[3], os.O_WRONLY)
    number = 0
    while True:
        number += 1
        os.write(ack, b"send %d\n" % number)
        job = body(number)
        answer = ask(b"put 0 0 10 %d\r\n%s\r\n" % (len(job), job))
        if not answer.startswith(b"INSERTED"):
            sys.exit("put: %r" % answer)
        os.write(ack, b"ack %d\n" % number)
while True:
    answer = ask(b"peek-ready\r\n")
    if not answer.startswith(b"FOUND"):
        break
    _, job, size = answer.split()
    contents = answers.read(int(size) + 2)[:-2]
    number = int(job)  # the first job has id 1, as the first transaction
    good = sum(a == b for a, b in zip(contents, body(number)))
    print(number if contents == body(number) else "invented job %d: %d of %d bytes are right" % (number, good, len(contents)))
    ask(b"delete %s\r\n" % job)
server.kill()
server.wait()
