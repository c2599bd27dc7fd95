// SPDX-License-Identifier: BSD-2-Clause
//
// An RC ping-pong in Java: Pingpong DEVICE [SERVER]. README.md describes the exchange. The native
// methods are in pingpong_jni.c. A message lies in direct buffers, which the garbage collector does
// not move, so it is not copied between Java and the adapter.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.ConnectException;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;

public final class Pingpong {
    private static final int PORT = 18620, ROUNDS = 1000, SIZE = 64, PSN = 300;

    static {
        System.loadLibrary("pingpong");
    }

    /** Opens a device with one QP and returns a handle. Each method throws if a verb fails. */
    private static native long open(String device, ByteBuffer in, ByteBuffer out);

    private static native int qpNumber(long end);

    private static native String gid(long end);

    private static native void connect(long end, int qpn, int theirPsn, String theirGid, int ownPsn);

    private static native void postReceive(long end);

    private static native void postSend(long end);

    /** Polls until this many requests are complete. */
    private static native void await(long end, int count);

    private static native void close(long end);

    /** A TCP connection on which both ends say the same number of lines. */
    private static final class Meeting {
        private final PrintWriter writer;
        private final BufferedReader reader;

        Meeting(String server) throws IOException, InterruptedException {
            Socket socket = server == null ? accept() : call(server);
            writer = new PrintWriter(socket.getOutputStream(), true);
            reader = new BufferedReader(new InputStreamReader(socket.getInputStream()));
        }

        private static Socket accept() throws IOException {
            try (ServerSocket listener = new ServerSocket(PORT)) {
                return listener.accept();
            }
        }

        private static Socket call(String server) throws IOException, InterruptedException {
            for (int tries = 0;; tries++) {
                try {
                    return new Socket(server, PORT);
                } catch (ConnectException refused) {
                    if (tries == 500)
                        throw refused;
                    Thread.sleep(10);
                }
            }
        }

        String[] swap(String line) throws IOException {
            writer.println(line);
            return reader.readLine().split(" ");
        }
    }

    private static void fill(ByteBuffer buffer, byte value) {
        for (int i = 0; i < SIZE; i++)
            buffer.put(i, value);
    }

    private static void check(ByteBuffer buffer, byte value) {
        for (int i = 0; i < SIZE; i++)
            if (buffer.get(i) != value)
                throw new IllegalStateException("wrong data");
    }

    public static void main(String[] arguments) throws Exception {
        String server = arguments.length > 1 ? arguments[1] : null;
        ByteBuffer in = ByteBuffer.allocateDirect(SIZE);
        ByteBuffer out = ByteBuffer.allocateDirect(SIZE);
        long end = open(arguments[0], in, out);

        postReceive(end);
        Meeting meeting = new Meeting(server);
        String[] theirs = meeting.swap(Integer.toUnsignedString(qpNumber(end)) + " " + PSN + " " + gid(end));
        connect(end, Integer.parseUnsignedInt(theirs[0]), Integer.parseInt(theirs[1]), theirs[2], PSN);
        meeting.swap("ready");
        for (int number = 0; number < ROUNDS; number++) {
            byte ping = (byte) (number & 127);
            byte pong = (byte) (number + 1 & 127);

            if (server != null) {
                fill(out, ping);
                postSend(end);
                await(end, 2);
                check(in, pong);
                postReceive(end);
            } else {
                await(end, 1);
                check(in, ping);
                postReceive(end);
                fill(out, pong);
                postSend(end);
                await(end, 1);
            }
        }
        meeting.swap("done");
        close(end);
        System.out.println(ROUNDS + " round trips of " + SIZE + " bytes, all right");
    }
}
