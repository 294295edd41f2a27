// Threads that share out numbered pieces of work. Which thread takes which piece never shows in the results.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

namespace dota {

class Pool {
 public:
  // `threads` work in all: the calling one and threads - 1 more, which start with the first run that needs them.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }
  // `next`: the piece that the thread will do after this one, if that is settled; else -1.
  using Work = std::function<void(int thread, int index, int next)>;
  // Calls `work` once for every index below n and returns when all are done. It must not throw. One run at a time.
  // A forked child starts threads of its own. Throws std::system_error if a thread cannot be started.
  void run(int n, const Work& work);

 private:
  struct Workers;

  Workers& workers();
  void abandon_after_fork();

  int threads_;
  pid_t process_ = 0;  // that started the workers
  std::unique_ptr<Workers> workers_;
};

}  // namespace dota
