// Threads that share out numbered pieces of work. Which thread takes which piece never shows in the results.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace dota {

class Pool {
 public:
  // `threads` work in all: the calling one and threads - 1 more.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  // `next`: the piece that the thread will do after this one, if that is settled; else -1.
  using Work = std::function<void(int thread, int index, int next)>;
  // Calls `work` once for every index below n and returns when all are done. It must not throw. One run at a time.
  void run(int n, const Work& work);

 private:
  void loop(int thread);
  void take(int thread, const Work& work, int n);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const Work* work_ = nullptr;
  int n_ = 0, active_ = 0;
  std::uint64_t run_ = 0;
  bool stop_ = false;
  std::atomic<int> next_{0};
};

}  // namespace dota
