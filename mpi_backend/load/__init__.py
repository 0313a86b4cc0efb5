"""Reads the inputs, assigns rows to ranks, and builds what the loop works on."""
