"""When and by how much pools of rollouts and inference servers grow and shrink: pure logic."""
